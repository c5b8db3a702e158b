// IQ4_NL: blocks of 32 columns, 4-bit numbers of values that are not evenly spaced.
//
//   byte  0      2                         18
//         | d    | qs[16]                  |   d: half
//
//   column i: n = low nibble of qs[i] for i < 16, high nibble of qs[i - 16] otherwise
//     value = d * kIq4Values[n] (four_bit.h)
#pragma once

#include "format/format_traits.h"
#include "format/four_bit.h"
#include "format/half.h"

namespace eider {

struct IQ4_NL {
  static constexpr Format kFormat = Format::kIQ4_NL;
  static constexpr const char* kName = "IQ4_NL";
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
    unpack_four_bit(block.qs, 16, kIq4Values, unit.code);
  }

  static EIDER_ALWAYS_INLINE void decode(const Block& block, float* values) {
    decode_units<IQ4_NL>(block, values);
  }
};
static_assert(Integer32Format<IQ4_NL>);

}  // namespace eider
