// IQ3_XXS: superblocks of 256 columns, vectors of 4 out of a grid of 256; each 32 columns have a 4-bit scale.
//
//   byte  0      2                     66                     98
//         | d    | qs[64]              | signs_and_scales[32] |   d: half; a 32-bit word for each 32 columns
//
//   column i, j = i / 32: v = vector qs[i / 4] of the grid, place i % 4
//     word j: bits 0-27 signs, 7 bits for each 8 columns (the eighth by parity: grid.h); bits 28-31 scale_j
//     value = d * (scale_j + 1/2) / 2 * +-v = (d / 2) * (2 * scale_j + 1) * +-(v / 2)
#pragma once

#include "format/format_traits.h"
#include "format/grid.h"
#include "format/half.h"

namespace eider {

struct IQ3_XXS {
  static constexpr Format kFormat = Format::kIQ3_XXS;
  static constexpr const char* kName = "IQ3_XXS";
  static constexpr std::int64_t kBlockElems = 256;
  static constexpr ProductRule kProduct = ProductRule::kInteger256;
  static constexpr bool kHasMin = false;

  struct Block {
    std::uint16_t d;
    std::uint8_t qs[64];
    std::uint8_t signs_and_scales[32];
  };
  static_assert(sizeof(Block) == 98);

  static EIDER_ALWAYS_INLINE void unpack(const Block& block, Unit256& unit) {
    unit.scale = half_to_float(block.d) * 0.5f;
    clear_minima(unit);
    for (int j = 0; j < 8; ++j) {
      const SignsAndScale word = load_signs_and_scale(block.signs_and_scales + 4 * j);
      set_scale_of_32(unit, j, 2 * word.scale() + 1);
      for (int i = 0; i < 32; ++i) {
        const std::uint16_t vector = kIq3XxsGrid[block.qs[8 * j + i / 4]];
        unit.code[32 * j + i] = signed_code(iq3_xxs_value(vector, i % 4), word.signs(i / 8), i % 8);
      }
    }
  }

  static EIDER_ALWAYS_INLINE void decode(const Block& block, float* values) {
    decode_units<IQ3_XXS>(block, values);
  }
};
static_assert(Integer256Format<IQ3_XXS>);

}  // namespace eider
