// F16: IEEE binary16.
//
//   byte  0        2
//         | half   |   one element a block
#pragma once

#include "format/format_traits.h"
#include "format/half.h"

namespace eider {

struct F16 {
  static constexpr Format kFormat = Format::kF16;
  static constexpr const char* kName = "F16";
  static constexpr std::int64_t kBlockElems = 1;
  static constexpr ProductRule kProduct = ProductRule::kFloat;
  static constexpr bool kHasMin = false;

  struct Block {
    std::uint16_t half;
  };
  static_assert(sizeof(Block) == 2);

  static EIDER_ALWAYS_INLINE void decode(const Block& block, float* values) {
    values[0] = half_to_float(block.half);
  }
};
static_assert(StorageFormat<F16>);

}  // namespace eider
