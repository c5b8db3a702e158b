// StepState: everything about one run of a plan that varies from step to step. The plan itself never changes,
// so what is here is what kernels read at run time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/token_id.h"

namespace eider {

/// Most kinds of KV blocks that one model has (full, sliding).
inline constexpr int kMaxKvKinds = 4;

/// A sequence's block tables: blocks[kind][position / 128] is the block's memory, null where it was given
/// back. Every position that a row of the step may see has its block, and so has the row's own position.
struct SequenceBlocks {
  std::byte* const* blocks[kMaxKvKinds] = {};
};

struct StepState {
  /// Rows of the step. A sequence's rows stand in ascending position; a row sees the rows of its own sequence
  /// before it.
  std::span<const TokenId> token_ids;       ///< [tokens], each in 0..vocab_size-1
  std::span<const std::int32_t> positions;  ///< [tokens], each >= 0
  std::span<const std::int32_t> sequence;   ///< [tokens], index into `sequences`
  std::span<const SequenceBlocks> sequences;
  std::span<const std::int32_t> logit_rows;  ///< rows whose logits are wanted, ascending; may be empty

  std::int64_t tokens() const { return static_cast<std::int64_t>(token_ids.size()); }
};

}  // namespace eider
