#include "tools/memory.h"

#include <fmt/format.h>

#include <algorithm>

namespace eider {
namespace {

std::int64_t divide_up(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

/// Most blocks of `kind` that one session holds at a time.
std::int64_t most_blocks(const KvKind& kind, const EngineOptions& options) {
  const std::int64_t all = divide_up(options.context, kKvBlockPositions);
  if (kind.window == 0) return all;
  // The window before a step and the step's own rows, cut anywhere; and the window before the last prompt's
  // end, which a session keeps for the next answer.
  const std::int64_t moving = divide_up(kind.window + options.max_batch_tokens, kKvBlockPositions) + 1;
  const std::int64_t kept = divide_up(kind.window, kKvBlockPositions) + 1;
  return std::min(all, moving + kept);
}

}  // namespace

MemoryNeed memory_need(const Model& model, const Backend& backend, const EngineOptions& options) {
  MemoryNeed need;
  need.weights = model.checkpoint->weight_bytes();
  for (const KvKind& kind : model.plan.kv_kinds)
    need.kv += most_blocks(kind, options) * kv_block_bytes(kind, options.kv_type);
  const CompileOptions compile = {.max_tokens = options.max_batch_tokens,
                                  .max_logit_rows = options.max_logit_rows,
                                  .kv_type = options.kv_type};
  need.working = backend.working_memory(model.plan, compile);
  return need;
}

std::int64_t largest_context(const Model& model, const Backend& backend, EngineOptions options,
                             std::int64_t bytes) {
  const auto fits = [&](std::int64_t context) {
    options.context = context;
    return memory_need(model, backend, options).total() <= bytes;
  };
  const std::int64_t own = model.max_position_embeddings;
  if (fits(own)) return own;
  // The need grows with the context: halve the interval of blocks between what fits and what does not.
  std::int64_t fitting = 0, too_many = divide_up(own, kKvBlockPositions);
  while (too_many - fitting > 1) {
    const std::int64_t middle = (fitting + too_many) / 2;
    (fits(middle * kKvBlockPositions) ? fitting : too_many) = middle;
  }
  return fitting * kKvBlockPositions;
}

std::string describe(const MemoryNeed& need) {
  return fmt::format("needs {} (weights {}, KV cache {}, working memory {})", format_bytes(need.total()),
                     format_bytes(need.weights), format_bytes(need.kv), format_bytes(need.working));
}

std::string format_bytes(std::int64_t bytes) {
  constexpr double kKiB = 1024, kMiB = kKiB * 1024, kGiB = kMiB * 1024;
  const auto value = static_cast<double>(bytes);
  if (value >= kGiB) return fmt::format("{:.1f} GiB", value / kGiB);
  if (value >= kMiB) return fmt::format("{:.1f} MiB", value / kMiB);
  return fmt::format("{:.1f} KiB", value / kKiB);
}

}  // namespace eider
