// Q4_1: blocks of 32 columns, 4-bit codes with a scale and a minimum.
//
//   byte  0      2      4                         20
//         | d    | m    | qs[16]                  |   d, m: half
//
//   column i: code = low nibble of qs[i] for i < 16, high nibble of qs[i - 16] otherwise; value = d * code +
//   m
#pragma once

#include "format/format_traits.h"
#include "format/half.h"

namespace eider {

struct Q4_1 {
  static constexpr Format kFormat = Format::kQ4_1;
  static constexpr const char* kName = "Q4_1";
  static constexpr std::int64_t kBlockElems = 32;
  static constexpr ProductRule kProduct = ProductRule::kInteger32;
  static constexpr bool kHasMin = true;

  struct Block {
    std::uint16_t d;
    std::uint16_t m;
    std::uint8_t qs[16];
  };
  static_assert(sizeof(Block) == 20);

  static EIDER_ALWAYS_INLINE void unpack(const Block& block, Unit32& unit) {
    unit.scale = half_to_float(block.d);
    unit.min = half_to_float(block.m);
    for (int i = 0; i < 16; ++i) {
      unit.code[i] = static_cast<std::int8_t>(block.qs[i] & 15);
      unit.code[i + 16] = static_cast<std::int8_t>(block.qs[i] >> 4);
    }
  }

  static EIDER_ALWAYS_INLINE void decode(const Block& block, float* values) {
    decode_units<Q4_1>(block, values);
  }
};
static_assert(Integer32Format<Q4_1>);

}  // namespace eider
