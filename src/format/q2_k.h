// Q2_K: superblocks of 256 columns, 2-bit codes; each 16 columns have a 4-bit scale and a 4-bit minimum.
//
//   byte  0            16                  80     82     84
//         | scales[16] | qs[64]            | d    | dmin |   d, dmin: half; qs: two_bit.h
//
//   column i, j = i / 16: value = d * (low nibble of scales[j]) * code - dmin * (high nibble of scales[j])
#pragma once

#include "format/format_traits.h"
#include "format/half.h"
#include "format/two_bit.h"

namespace eider {

struct Q2_K {
  static constexpr Format kFormat = Format::kQ2_K;
  static constexpr const char* kName = "Q2_K";
  static constexpr std::int64_t kBlockElems = 256;
  static constexpr ProductRule kProduct = ProductRule::kInteger256;
  static constexpr bool kHasMin = true;

  struct Block {
    std::uint8_t scales[16];
    std::uint8_t qs[64];
    std::uint16_t d;
    std::uint16_t dmin;
  };
  static_assert(sizeof(Block) == 84);

  static EIDER_ALWAYS_INLINE void unpack(const Block& block, Unit256& unit) {
    unit.scale = half_to_float(block.d);
    unit.min_scale = half_to_float(block.dmin);
    for (int j = 0; j < 16; ++j) {
      unit.sub_scale[j] = block.scales[j] & 15;
      unit.sub_min[j] = block.scales[j] >> 4;
    }
    for (int i = 0; i < 256; ++i) unit.code[i] = static_cast<std::int8_t>(two_bit_code(block.qs, i));
  }

  static EIDER_ALWAYS_INLINE void decode(const Block& block, float* values) {
    decode_units<Q2_K>(block, values);
  }
};
static_assert(Integer256Format<Q2_K>);

}  // namespace eider
