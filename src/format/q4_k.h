// Q4_K: superblocks of 256 columns, 4-bit codes; each 32 columns have a 6-bit scale and a 6-bit minimum.
//
//   byte  0      2      4            16                                144
//         | d    | dmin | scales[12] | qs[128]                         |   d, dmin: half; scales: k_scales.h
//
//   column i, j = i / 32: code = nibble j % 2 of qs[32 * (i / 64) + i % 32]
//     value = d * scale_j * code - dmin * min_j
#pragma once

#include "format/format_traits.h"
#include "format/half.h"
#include "format/k_scales.h"

namespace eider {

struct Q4_K {
  static constexpr Format kFormat = Format::kQ4_K;
  static constexpr const char* kName = "Q4_K";
  static constexpr std::int64_t kBlockElems = 256;
  static constexpr ProductRule kProduct = ProductRule::kInteger256;
  static constexpr bool kHasMin = true;

  struct Block {
    std::uint16_t d;
    std::uint16_t dmin;
    std::uint8_t scales[12];
    std::uint8_t qs[128];
  };
  static_assert(sizeof(Block) == 144);

  static EIDER_ALWAYS_INLINE void unpack(const Block& block, Unit256& unit) {
    unit.scale = half_to_float(block.d);
    unit.min_scale = half_to_float(block.dmin);
    unpack_k_scales(block.scales, unit);
    for (int pair = 0; pair < 4; ++pair) {
      for (int i = 0; i < 32; ++i) {
        const int packed = block.qs[32 * pair + i];
        unit.code[64 * pair + i] = static_cast<std::int8_t>(packed & 15);
        unit.code[64 * pair + 32 + i] = static_cast<std::int8_t>(packed >> 4);
      }
    }
  }

  static EIDER_ALWAYS_INLINE void decode(const Block& block, float* values) {
    decode_units<Q4_K>(block, values);
  }
};
static_assert(Integer256Format<Q4_K>);

}  // namespace eider
