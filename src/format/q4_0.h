// Q4_0: blocks of 32 columns, signed 4-bit codes with a scale.
//
//   byte  0      2                         18
//         | d    | qs[16]                  |   d: half
//
//   column i: n = low nibble of qs[i] for i < 16, high nibble of qs[i - 16] otherwise; value = d * (n - 8)
#pragma once

#include "format/format_traits.h"
#include "format/half.h"

namespace eider {

struct Q4_0 {
  static constexpr Format kFormat = Format::kQ4_0;
  static constexpr const char* kName = "Q4_0";
  static constexpr std::int64_t kBlockElems = 32;
  static constexpr ProductRule kProduct = ProductRule::kInteger32;
  static constexpr bool kHasMin = false;

  struct Block {
    std::uint16_t d;
    std::uint8_t qs[16];
  };
  static_assert(sizeof(Block) == 18);

  static EIDER_ALWAYS_INLINE void unpack(const Block& block, Unit32& unit) {
    unit.scale = half_to_float(block.d);
    unit.min = 0;
    for (int i = 0; i < 16; ++i) {
      unit.code[i] = static_cast<std::int8_t>((block.qs[i] & 15) - 8);
      unit.code[i + 16] = static_cast<std::int8_t>((block.qs[i] >> 4) - 8);
    }
  }

  static EIDER_ALWAYS_INLINE void decode(const Block& block, float* values) {
    decode_units<Q4_0>(block, values);
  }
};
static_assert(Integer32Format<Q4_0>);

}  // namespace eider
