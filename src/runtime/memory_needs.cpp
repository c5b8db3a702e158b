#include "runtime/memory_needs.h"

#include <algorithm>

namespace eider {
namespace {

// Most blocks that a stretch of `positions` touches, wherever it begins.
std::int64_t most_blocks(std::int64_t positions) {
  return (positions + 2 * kKvBlockPositions - 2) / kKvBlockPositions;
}

}  // namespace

std::int64_t kv_bytes(const std::vector<KvKind>& kinds, KvType type, std::int64_t context,
                      std::int64_t max_batch_tokens) {
  std::int64_t bytes = 0;
  for (const KvKind& kind : kinds) {
    std::int64_t blocks = (context + kKvBlockPositions - 1) / kKvBlockPositions;
    if (kind.window > 0) {
      const std::int64_t step = most_blocks(kind.window + max_batch_tokens);
      const std::int64_t prompt_end = most_blocks(kind.window + 1);
      blocks = std::min(blocks, step + prompt_end);
    }
    bytes += blocks * kv_block_bytes(kind, type);
  }
  return bytes;
}

MemoryNeeds memory_needs(const Model& model, const Backend& backend, const EngineOptions& options) {
  const std::int64_t context =
      std::min(kMaxContext, options.context > 0 ? options.context : model.max_position_embeddings);
  CompileOptions compile;
  compile.max_tokens = options.max_batch_tokens;
  compile.max_logit_rows = options.max_logit_rows;
  compile.kv_type = options.kv_type;
  compile.max_positions = context;
  compile.rows_beside = options.rows_beside;
  // What the backend copies need not stay in memory where it was mapped.
  std::int64_t weights = model.checkpoint->weight_bytes();
  for (const TensorView* copied : backend.copied_weights(model.plan))
    weights -= model.checkpoint->mapped_bytes(*copied);
  return {weights, backend.working_memory(model.plan, compile),
          kv_bytes(model.plan.kv_kinds, options.kv_type, context, options.max_batch_tokens)};
}

}  // namespace eider
