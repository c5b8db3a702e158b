// Memory: what a model and a context will take, known before anything is loaded.
#pragma once

#include <cstdint>
#include <string>

#include "base/machine.h"
#include "base/result.h"
#include "model/model.h"
#include "ops/backend.h"
#include "runtime/engine.h"

namespace eider {

struct MemoryNeed {
  std::int64_t weights = 0;  ///< bytes of the checkpoint's tensors
  std::int64_t kv = 0;       ///< KV blocks of one session of the whole context
  std::int64_t working = 0;  ///< the backend's own: activations, scratch, repacked weights

  std::int64_t total() const { return weights + kv + working; }
};

/// The need of one session of `options.context` tokens.
MemoryNeed memory_need(const Model& model, const Backend& backend, const EngineOptions& options);

/// The largest context (a multiple of 128, or the model's own) that `bytes` are enough for; 0 where none is.
std::int64_t largest_context(const Model& model, const Backend& backend, EngineOptions options,
                             std::int64_t bytes);

/// "needs 1.9 GiB (weights 0.9 GiB, KV cache 0.8 GiB, working memory 0.2 GiB)"
std::string describe(const MemoryNeed& need);

/// "1.5 GiB", "312 MiB"
std::string format_bytes(std::int64_t bytes);

}  // namespace eider
