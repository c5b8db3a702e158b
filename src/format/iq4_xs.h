// IQ4_XS: superblocks of 256 columns, codes as in IQ4_NL; each 32 columns have a 6-bit scale.
//
//   byte  0      2          4             8                                   136
//         | d    | scales_h | scales_l[4] | qs[128]                           |   d: half; scales_h: 16 bits
//
//   column i, j = i / 32: n = nibble of qs[16 * j ..] as in IQ4_NL
//     scale_j = (nibble j % 2 of scales_l[j / 2]) | (bits 2j, 2j + 1 of scales_h) << 4
//     value = d * (scale_j - 32) * kIq4Values[n] (four_bit.h)
#pragma once

#include "format/format_traits.h"
#include "format/four_bit.h"
#include "format/half.h"

namespace eider {

struct IQ4_XS {
  static constexpr Format kFormat = Format::kIQ4_XS;
  static constexpr const char* kName = "IQ4_XS";
  static constexpr std::int64_t kBlockElems = 256;
  static constexpr ProductRule kProduct = ProductRule::kInteger256;
  static constexpr bool kHasMin = false;

  struct Block {
    std::uint16_t d;
    std::uint16_t scales_h;
    std::uint8_t scales_l[4];
    std::uint8_t qs[128];
  };
  static_assert(sizeof(Block) == 136);

  static EIDER_ALWAYS_INLINE void unpack(const Block& block, Unit256& unit) {
    unit.scale = half_to_float(block.d);
    clear_minima(unit);
    for (int j = 0; j < 8; ++j) {
      const int low = block.scales_l[j / 2] >> (4 * (j % 2)) & 15;
      const int high = block.scales_h >> (2 * j) & 3;
      set_scale_of_32(unit, j, (low | high << 4) - 32);
      unpack_four_bit(block.qs + 16 * j, 16, kIq4Values, unit.code + 32 * j);
    }
  }

  static EIDER_ALWAYS_INLINE void decode(const Block& block, float* values) {
    decode_units<IQ4_XS>(block, values);
  }
};
static_assert(Integer256Format<IQ4_XS>);

}  // namespace eider
