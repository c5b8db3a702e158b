// Q5_0: blocks of 32 columns, signed 5-bit codes with a scale.
//
//   byte  0      2      6                         22
//         | d    | qh   | qs[16]                  |   d: half; qh: the fifth bits, column i at bit i
//
//   column i: n = nibble of qs as in Q4_0, plus 16 * bit i of qh; value = d * (n - 16)
#pragma once

#include "format/five_bit.h"
#include "format/format_traits.h"
#include "format/half.h"

namespace eider {

struct Q5_0 {
  static constexpr Format kFormat = Format::kQ5_0;
  static constexpr const char* kName = "Q5_0";
  static constexpr std::int64_t kBlockElems = 32;
  static constexpr ProductRule kProduct = ProductRule::kInteger32;
  static constexpr bool kHasMin = false;

  struct Block {
    std::uint16_t d;
    std::uint8_t qh[4];  // little-endian
    std::uint8_t qs[16];
  };
  static_assert(sizeof(Block) == 22);

  static EIDER_ALWAYS_INLINE void unpack(const Block& block, Unit32& unit) {
    unit.scale = half_to_float(block.d);
    unit.min = 0;
    unpack_five_bit(block.qs, block.qh, 16, unit.code);
  }

  static EIDER_ALWAYS_INLINE void decode(const Block& block, float* values) {
    decode_units<Q5_0>(block, values);
  }
};
static_assert(Integer32Format<Q5_0>);

}  // namespace eider
