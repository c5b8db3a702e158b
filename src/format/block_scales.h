// BlockScales: the scales of a weight whose format has none of its own (FP8), as a table beside its codes:
// value = code * scale of its block. Kernels read it too, so it must not use the standard library.
#pragma once

#include <cstdint>

#include "base/inline.h"

namespace eider {

struct BlockScales {
  /// Products take inputs times 2^-17 and make up for it here (docs/NUMERICS.md).
  static constexpr float kProductFactor = 0x1p17f;

  const float* values = nullptr;   ///< [row blocks, column blocks]; null: 1 everywhere
  std::int64_t block_rows = 1;     ///< rows of a block; the last one may be short
  std::int64_t block_columns = 0;  ///< a multiple of 32; 0: the block is whole rows
  std::int64_t column_blocks = 1;
  std::int64_t first_row = 0;  ///< the weight's row 0 is this row of the table's first block

  /// Of the element at `row`, `column`.
  EIDER_ALWAYS_INLINE float at(std::int64_t row, std::int64_t column) const {
    if (values == nullptr) return 1;
    const std::int64_t row_block = (first_row + row) / block_rows;
    return values[row_block * column_blocks + (block_columns == 0 ? 0 : column / block_columns)];
  }
  /// What products multiply the sum of the unit at `column` with, 1 where scales are of whole rows; those are
  /// what sums of rows are multiplied with.
  EIDER_ALWAYS_INLINE float of_unit(std::int64_t row, std::int64_t column) const {
    return block_columns == 0 ? 1 : at(row, column) * kProductFactor;
  }
  EIDER_ALWAYS_INLINE float of_row(std::int64_t row) const {
    return block_columns == 0 ? at(row, 0) * kProductFactor : 1;
  }
};

/// Whether two tables of scales are cut alike.
EIDER_ALWAYS_INLINE bool has_same_blocks(const BlockScales& a, const BlockScales& b) {
  return a.block_rows == b.block_rows && a.block_columns == b.block_columns && a.first_row == b.first_row;
}

}  // namespace eider
