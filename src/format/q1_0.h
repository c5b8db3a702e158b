// Q1_0: blocks of 128 columns, one bit each. A block is four units of 32.
//
//   byte  0      2                         18
//         | d    | qs[16]                  |   d: half
//
//   column i: value = d where bit i % 8 of qs[i / 8] is set, -d otherwise
#pragma once

#include "format/format_traits.h"
#include "format/half.h"

namespace eider {

struct Q1_0 {
  static constexpr Format kFormat = Format::kQ1_0;
  static constexpr const char* kName = "Q1_0";
  static constexpr std::int64_t kBlockElems = 128;
  static constexpr ProductRule kProduct = ProductRule::kInteger32;
  static constexpr bool kHasMin = false;

  struct Block {
    std::uint16_t d;
    std::uint8_t qs[16];
  };
  static_assert(sizeof(Block) == 18);

  static EIDER_ALWAYS_INLINE void unpack(const Block& block, int part, Unit32& unit) {
    unit.scale = half_to_float(block.d);
    unit.min = 0;
    for (int i = 0; i < 32; ++i) {
      const int bit = block.qs[4 * part + i / 8] >> (i % 8) & 1;
      unit.code[i] = static_cast<std::int8_t>(2 * bit - 1);
    }
  }

  static EIDER_ALWAYS_INLINE void decode(const Block& block, float* values) {
    decode_units<Q1_0>(block, values);
  }
};
static_assert(Integer32Format<Q1_0>);

}  // namespace eider
