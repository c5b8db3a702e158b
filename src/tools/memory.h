// Memory: which context fits, and how sizes are told to people. What a context needs is
// runtime/memory_needs.h.
#pragma once

#include <cstdint>
#include <string>

#include "base/format_bytes.h"
#include "model/model.h"
#include "ops/backend.h"
#include "runtime/engine.h"
#include "runtime/memory_needs.h"

namespace eider {

/// The largest context (a multiple of 128, or the model's own) that `bytes` are enough for; 0 where none is.
std::int64_t largest_context(const Model& model, const Backend& backend, EngineOptions options,
                             std::int64_t bytes);

/// "needs 1.9 GiB (weights 0.9 GiB, KV cache 0.8 GiB, working memory 0.2 GiB)"
std::string describe(const MemoryNeeds& needs);

}  // namespace eider
