#include "tools/memory.h"

#include <fmt/format.h>

namespace eider {

std::int64_t largest_context(const Model& model, const Backend& backend, EngineOptions options,
                             std::int64_t bytes) {
  const auto fits = [&](std::int64_t context) {
    options.context = context;
    return memory_needs(model, backend, options).total() <= bytes;
  };
  const std::int64_t own = model.max_position_embeddings;
  if (fits(own)) return own;
  // The need grows with the context: halve the interval of blocks between what fits and what does not.
  std::int64_t fitting = 0, too_many = (own + kKvBlockPositions - 1) / kKvBlockPositions;
  while (too_many - fitting > 1) {
    const std::int64_t middle = (fitting + too_many) / 2;
    (fits(middle * kKvBlockPositions) ? fitting : too_many) = middle;
  }
  return fitting * kKvBlockPositions;
}

std::string describe(const MemoryNeeds& needs) {
  return fmt::format("needs {} (weights {}, KV cache {}, working memory {})", format_bytes(needs.total()),
                     format_bytes(needs.weights), format_bytes(needs.kv), format_bytes(needs.working));
}

}  // namespace eider
