// IQ2_S: superblocks of 256 columns, vectors of 8 out of a grid of 1024; each 16 columns have a 4-bit scale.
//
//   byte  0      2            34           66      74          82
//         | d    | qs[32]     | signs[32]  | qh[8] | scales[8] |   d: half
//
//   column i, j = i / 16, p = i / 8
//     v = vector qs[p] | (bits 2 * (p % 4), + 1 of qh[p / 4]) << 8 of the grid, place i % 8
//     negative where bit i % 8 of signs[p] is set
//     scale_j = nibble j % 2 of scales[j / 2]
//     value = d * (scale_j + 1/2) / 4 * +-v = (d / 8) * (2 * scale_j + 1) * +-v
#pragma once

#include "format/format_traits.h"
#include "format/grid.h"
#include "format/half.h"

namespace eider {

struct IQ2_S {
  static constexpr Format kFormat = Format::kIQ2_S;
  static constexpr const char* kName = "IQ2_S";
  static constexpr std::int64_t kBlockElems = 256;
  static constexpr ProductRule kProduct = ProductRule::kInteger256;
  static constexpr bool kHasMin = false;

  struct Block {
    std::uint16_t d;
    std::uint8_t qs[32];
    std::uint8_t signs[32];
    std::uint8_t qh[8];
    std::uint8_t scales[8];
  };
  static_assert(sizeof(Block) == 82);

  static EIDER_ALWAYS_INLINE void unpack(const Block& block, Unit256& unit) {
    unit.scale = half_to_float(block.d) * 0.125f;
    clear_minima(unit);
    for (int j = 0; j < 16; ++j) {
      const int scale = block.scales[j / 2] >> (4 * (j % 2)) & 15;
      unit.sub_scale[j] = static_cast<std::int16_t>(2 * scale + 1);
    }
    for (int part = 0; part < 32; ++part) {
      const int high_bits = block.qh[part / 4] >> (2 * (part % 4)) & 3;
      unpack_iq2_vector(kIq2SGrid[block.qs[part] | high_bits << 8], block.signs[part], unit.code + 8 * part);
    }
  }

  static EIDER_ALWAYS_INLINE void decode(const Block& block, float* values) {
    decode_units<IQ2_S>(block, values);
  }
};
static_assert(Integer256Format<IQ2_S>);

}  // namespace eider
