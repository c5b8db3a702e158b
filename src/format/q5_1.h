// Q5_1: blocks of 32 columns, 5-bit codes with a scale and a minimum.
//
//   byte  0      2      4      8                         24
//         | d    | m    | qh   | qs[16]                  |   d, m: half; qh: the fifth bits, column i at bit
//         i
//
//   column i: code = nibble of qs as in Q4_1, plus 16 * bit i of qh; value = d * code + m
#pragma once

#include "format/five_bit.h"
#include "format/format_traits.h"
#include "format/half.h"

namespace eider {

struct Q5_1 {
  static constexpr Format kFormat = Format::kQ5_1;
  static constexpr const char* kName = "Q5_1";
  static constexpr std::int64_t kBlockElems = 32;
  static constexpr ProductRule kProduct = ProductRule::kInteger32;
  static constexpr bool kHasMin = true;

  struct Block {
    std::uint16_t d;
    std::uint16_t m;
    std::uint8_t qh[4];  // little-endian
    std::uint8_t qs[16];
  };
  static_assert(sizeof(Block) == 24);

  static EIDER_ALWAYS_INLINE void unpack(const Block& block, Unit32& unit) {
    unit.scale = half_to_float(block.d);
    unit.min = half_to_float(block.m);
    unpack_five_bit(block.qs, block.qh, 0, unit.code);
  }

  static EIDER_ALWAYS_INLINE void decode(const Block& block, float* values) {
    decode_units<Q5_1>(block, values);
  }
};
static_assert(Integer32Format<Q5_1>);

}  // namespace eider
