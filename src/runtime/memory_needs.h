// What a model and a context need of the machine's memory, known before anything is loaded.
#pragma once

#include <cstdint>
#include <vector>

#include "model/model.h"
#include "ops/backend.h"
#include "runtime/engine.h"

namespace eider {

/// All in bytes.
struct MemoryNeeds {
  std::int64_t weights = 0;
  std::int64_t working = 0;  ///< the backend's buffers of a step
  std::int64_t kv = 0;       ///< one session that fills the context
  std::int64_t total() const { return weights + working + kv; }
};

/// Most bytes of KV blocks that one session of `context` tokens holds: all of them for full layers; for
/// window layers those that a step of `max_batch_tokens` and the marked prompt end can see.
std::int64_t kv_bytes(const std::vector<KvKind>& kinds, KvType type, std::int64_t context,
                      std::int64_t max_batch_tokens);

/// `options.context` 0: the model's own.
MemoryNeeds memory_needs(const Model& model, const Backend& backend, const EngineOptions& options);

}  // namespace eider
