// BF16: the upper half of an IEEE binary32.
//
//   byte  0        2
//         | upper  |   one element a block
#pragma once

#include "format/format_traits.h"
#include "format/half.h"

namespace eider {

struct BF16 {
  static constexpr Format kFormat = Format::kBF16;
  static constexpr const char* kName = "BF16";
  static constexpr std::int64_t kBlockElems = 1;
  static constexpr ProductRule kProduct = ProductRule::kFloat;
  static constexpr bool kHasMin = false;

  struct Block {
    std::uint16_t upper;
  };
  static_assert(sizeof(Block) == 2);

  static EIDER_ALWAYS_INLINE void decode(const Block& block, float* values) {
    values[0] = bfloat16_to_float(block.upper);
  }
};
static_assert(StorageFormat<BF16>);

}  // namespace eider
