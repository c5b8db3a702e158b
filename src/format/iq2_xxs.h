// IQ2_XXS: superblocks of 256 columns, vectors of 8 out of a grid of 256; each 32 columns have a 4-bit scale.
//
//   byte  0      2                     66
//         | d    | qs[64]              |   d: half; qs: for each 32 columns 4 indices and a 32-bit word
//
//   column i, j = i / 32: v = vector qs[8 * j + i % 32 / 8] of the grid, place i % 8
//     word j: bits 0-27 signs, 7 bits for each 8 columns (the eighth by parity: grid.h); bits 28-31 scale_j
//     value = d * (scale_j + 1/2) / 4 * +-v = (d / 8) * (2 * scale_j + 1) * +-v
#pragma once

#include "format/format_traits.h"
#include "format/grid.h"
#include "format/half.h"

namespace eider {

struct IQ2_XXS {
  static constexpr Format kFormat = Format::kIQ2_XXS;
  static constexpr const char* kName = "IQ2_XXS";
  static constexpr std::int64_t kBlockElems = 256;
  static constexpr ProductRule kProduct = ProductRule::kInteger256;
  static constexpr bool kHasMin = false;

  struct Block {
    std::uint16_t d;
    std::uint8_t qs[64];
  };
  static_assert(sizeof(Block) == 66);

  static EIDER_ALWAYS_INLINE void unpack(const Block& block, Unit256& unit) {
    unit.scale = half_to_float(block.d) * 0.125f;
    clear_minima(unit);
    for (int j = 0; j < 8; ++j) {
      const std::uint8_t* const indices = block.qs + 8 * j;
      const SignsAndScale word = load_signs_and_scale(indices + 4);
      set_scale_of_32(unit, j, 2 * word.scale() + 1);
      for (int part = 0; part < 4; ++part)
        unpack_iq2_vector(kIq2XxsGrid[indices[part]], word.signs(part), unit.code + 32 * j + 8 * part);
    }
  }

  static EIDER_ALWAYS_INLINE void decode(const Block& block, float* values) {
    decode_units<IQ2_XXS>(block, values);
  }
};
static_assert(Integer256Format<IQ2_XXS>);

}  // namespace eider
