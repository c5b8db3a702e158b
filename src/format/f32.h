// F32: IEEE binary32.
//
//   byte  0           4
//         | value     |   one element a block
#pragma once

#include "format/format_traits.h"

namespace eider {

struct F32 {
  static constexpr Format kFormat = Format::kF32;
  static constexpr const char* kName = "F32";
  static constexpr std::int64_t kBlockElems = 1;
  static constexpr ProductRule kProduct = ProductRule::kFloat;
  static constexpr bool kHasMin = false;

  struct Block {
    float value;
  };
  static_assert(sizeof(Block) == 4);

  static EIDER_ALWAYS_INLINE void decode(const Block& block, float* values) { values[0] = block.value; }
};
static_assert(StorageFormat<F32>);

}  // namespace eider
