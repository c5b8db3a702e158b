// IQ1_S: superblocks of 256 columns, vectors of 8 out of a grid of 2048 with values -1, 0, 1 and a shift;
// each 32 columns have a 3-bit scale.
//
//   byte  0      2            34           50
//         | d    | qs[32]     | qh[8]      |   d: half; qh: 16 bits
//
//   column i, j = i / 32, p = i % 32 / 8
//     v = vector qs[i / 8] | (bits 3p .. 3p + 2 of qh[j]) << 8 of the grid, place i % 8
//     scale_j = bits 12-14 of qh[j]; shift = 1/8, or -1/8 where bit 15 of qh[j] is set
//     value = d * (2 * scale_j + 1) * (v + shift) = (d / 8) * (2 * scale_j + 1) * (8 * v + 8 * shift)
#pragma once

#include "format/format_traits.h"
#include "format/grid.h"
#include "format/half.h"

namespace eider {

struct IQ1_S {
  static constexpr Format kFormat = Format::kIQ1_S;
  static constexpr const char* kName = "IQ1_S";
  static constexpr std::int64_t kBlockElems = 256;
  static constexpr ProductRule kProduct = ProductRule::kInteger256;
  static constexpr bool kHasMin = false;

  struct Block {
    std::uint16_t d;
    std::uint8_t qs[32];
    std::uint16_t qh[8];
  };
  static_assert(sizeof(Block) == 50);

  static EIDER_ALWAYS_INLINE void unpack(const Block& block, Unit256& unit) {
    unit.scale = half_to_float(block.d) * 0.125f;
    clear_minima(unit);
    for (int j = 0; j < 8; ++j) {
      const int high = block.qh[j];
      set_scale_of_32(unit, j, 2 * (high >> 12 & 7) + 1);
      for (int part = 0; part < 4; ++part) {
        const int index = block.qs[4 * j + part] | (high >> (3 * part) & 7) << 8;
        unpack_iq1_vector(kIq1Grid[index], high >> 15 != 0, unit.code + 32 * j + 8 * part);
      }
    }
  }

  static EIDER_ALWAYS_INLINE void decode(const Block& block, float* values) {
    decode_units<IQ1_S>(block, values);
  }
};
static_assert(Integer256Format<IQ1_S>);

}  // namespace eider
