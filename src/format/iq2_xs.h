// IQ2_XS: superblocks of 256 columns, vectors of 8 out of a grid of 512; each 16 columns have a 4-bit scale.
//
//   byte  0      2                     66          74
//         | d    | qs[32]              | scales[8] |   d: half; qs: 16 bits
//
//   column i, j = i / 16: v = vector (bits 0-8 of qs[i / 8]) of the grid, place i % 8
//     bits 9-15 of qs[i / 8]: the signs, the eighth by parity (grid.h)
//     scale_j = nibble j % 2 of scales[j / 2]
//     value = d * (scale_j + 1/2) / 4 * +-v = (d / 8) * (2 * scale_j + 1) * +-v
#pragma once

#include "format/format_traits.h"
#include "format/grid.h"
#include "format/half.h"

namespace eider {

struct IQ2_XS {
  static constexpr Format kFormat = Format::kIQ2_XS;
  static constexpr const char* kName = "IQ2_XS";
  static constexpr std::int64_t kBlockElems = 256;
  static constexpr ProductRule kProduct = ProductRule::kInteger256;
  static constexpr bool kHasMin = false;

  struct Block {
    std::uint16_t d;
    std::uint16_t qs[32];
    std::uint8_t scales[8];
  };
  static_assert(sizeof(Block) == 74);

  static EIDER_ALWAYS_INLINE void unpack(const Block& block, Unit256& unit) {
    unit.scale = half_to_float(block.d) * 0.125f;
    clear_minima(unit);
    for (int j = 0; j < 16; ++j) {
      const int scale = block.scales[j / 2] >> (4 * (j % 2)) & 15;
      unit.sub_scale[j] = static_cast<std::int16_t>(2 * scale + 1);
    }
    for (int part = 0; part < 32; ++part) {
      const int packed = block.qs[part];
      unpack_iq2_vector(kIq2XsGrid[packed & 511], expand_signs(packed >> 9), unit.code + 8 * part);
    }
  }

  static EIDER_ALWAYS_INLINE void decode(const Block& block, float* values) {
    decode_units<IQ2_XS>(block, values);
  }
};
static_assert(Integer256Format<IQ2_XS>);

}  // namespace eider
