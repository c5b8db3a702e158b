// Q3_K: superblocks of 256 columns, signed 3-bit codes; each 16 columns have a 6-bit scale.
//
//   byte  0           32                  96           108    110
//         | hmask[32] | qs[64]            | scales[12] | d    |   d: half; qs: two_bit.h
//
//   scale j = 0..15: low  = nibble j / 8 of scales[j % 8]
//                    high = bits 2 * (j / 4), + 1 of scales[8 + j % 4]
//   column i: high bit = bit i / 32 of hmask[i % 32]
//     value = d * ((low | high << 4) - 32) * ((code | high bit << 2) - 4)
#pragma once

#include "format/format_traits.h"
#include "format/half.h"
#include "format/two_bit.h"

namespace eider {

struct Q3_K {
  static constexpr Format kFormat = Format::kQ3_K;
  static constexpr const char* kName = "Q3_K";
  static constexpr std::int64_t kBlockElems = 256;
  static constexpr ProductRule kProduct = ProductRule::kInteger256;
  static constexpr bool kHasMin = false;

  struct Block {
    std::uint8_t hmask[32];
    std::uint8_t qs[64];
    std::uint8_t scales[12];
    std::uint16_t d;
  };
  static_assert(sizeof(Block) == 110);

  static EIDER_ALWAYS_INLINE void unpack(const Block& block, Unit256& unit) {
    unit.scale = half_to_float(block.d);
    clear_minima(unit);
    for (int j = 0; j < 16; ++j) {
      const int low = block.scales[j % 8] >> (4 * (j / 8)) & 15;
      const int high = block.scales[8 + j % 4] >> (2 * (j / 4)) & 3;
      unit.sub_scale[j] = static_cast<std::int16_t>((low | high << 4) - 32);
    }
    for (int i = 0; i < 256; ++i) {
      const int high = block.hmask[i % 32] >> (i / 32) & 1;
      unit.code[i] = static_cast<std::int8_t>((two_bit_code(block.qs, i) | high << 2) - 4);
    }
  }

  static EIDER_ALWAYS_INLINE void decode(const Block& block, float* values) {
    decode_units<Q3_K>(block, values);
  }
};
static_assert(Integer256Format<Q3_K>);

}  // namespace eider
