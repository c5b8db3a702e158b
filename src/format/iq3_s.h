// IQ3_S: superblocks of 256 columns, vectors of 4 out of a grid of 512; each 32 columns have a 4-bit scale.
//
//   byte  0      2                     66      74          106         110
//         | d    | qs[64]              | qh[8] | signs[32] | scales[4] |   d: half
//
//   column i, j = i / 32: v = vector qs[i / 4] | (bit i / 4 % 8 of qh[j]) << 8 of the grid, place i % 4
//     negative where bit i % 8 of signs[i / 8] is set
//     value = d * (2 * nibble j % 2 of scales[j / 2] + 1) * +-v
#pragma once

#include "format/format_traits.h"
#include "format/grid.h"
#include "format/half.h"

namespace eider {

struct IQ3_S {
  static constexpr Format kFormat = Format::kIQ3_S;
  static constexpr const char* kName = "IQ3_S";
  static constexpr std::int64_t kBlockElems = 256;
  static constexpr ProductRule kProduct = ProductRule::kInteger256;
  static constexpr bool kHasMin = false;

  struct Block {
    std::uint16_t d;
    std::uint8_t qs[64];
    std::uint8_t qh[8];
    std::uint8_t signs[32];
    std::uint8_t scales[4];
  };
  static_assert(sizeof(Block) == 110);

  static EIDER_ALWAYS_INLINE void unpack(const Block& block, Unit256& unit) {
    unit.scale = half_to_float(block.d);
    clear_minima(unit);
    for (int j = 0; j < 8; ++j) {
      const int scale = block.scales[j / 2] >> (4 * (j % 2)) & 15;
      set_scale_of_32(unit, j, 2 * scale + 1);
      for (int i = 0; i < 32; ++i) {
        const int ninth_bit = block.qh[j] >> (i / 4) & 1;
        const std::uint16_t vector = kIq3SGrid[block.qs[8 * j + i / 4] | ninth_bit << 8];
        unit.code[32 * j + i] = signed_code(iq3_s_value(vector, i % 4), block.signs[4 * j + i / 8], i % 8);
      }
    }
  }

  static EIDER_ALWAYS_INLINE void decode(const Block& block, float* values) {
    decode_units<IQ3_S>(block, values);
  }
};
static_assert(Integer256Format<IQ3_S>);

}  // namespace eider
