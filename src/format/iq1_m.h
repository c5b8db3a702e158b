// IQ1_M: superblocks of 256 columns, vectors as in IQ1_S with a shift each; each 16 columns have a 3-bit
// scale.
//
//   byte  0            32         48          56
//         | qs[32]     | qh[16]   | scales[4] |   scales: 16 bits
//
//   d (half): bits 12-15 of scales[0] are its bits 0-3, of scales[1] its bits 4-7, and so on
//   column i, j = i / 16, p = i / 8: h = nibble p % 2 of qh[p / 2]
//     v = vector qs[p] | (bits 0-2 of h) << 8, place i % 8; shift = 1/8, or -1/8 where bit 3 of h is set
//     scale_j = bits 3 * (j % 4) .. + 2 of scales[j / 4]
//     value = d * (2 * scale_j + 1) * (v + shift) = (d / 8) * (2 * scale_j + 1) * (8 * v + 8 * shift)
#pragma once

#include "format/format_traits.h"
#include "format/grid.h"
#include "format/half.h"

namespace eider {

struct IQ1_M {
  static constexpr Format kFormat = Format::kIQ1_M;
  static constexpr const char* kName = "IQ1_M";
  static constexpr std::int64_t kBlockElems = 256;
  static constexpr ProductRule kProduct = ProductRule::kInteger256;
  static constexpr bool kHasMin = false;

  struct Block {
    std::uint8_t qs[32];
    std::uint8_t qh[16];
    std::uint16_t scales[4];
  };
  static_assert(sizeof(Block) == 56);

  /// The bits of d.
  static EIDER_ALWAYS_INLINE std::uint16_t scale_bits(const Block& block) {
    int bits = 0;
    for (int k = 0; k < 4; ++k) bits |= block.scales[k] >> 12 << (4 * k);
    return static_cast<std::uint16_t>(bits);
  }

  static EIDER_ALWAYS_INLINE void set_scale_bits(Block& block, std::uint16_t bits) {
    for (int k = 0; k < 4; ++k)
      block.scales[k] = static_cast<std::uint16_t>((block.scales[k] & 0x0fff) | (bits >> (4 * k) & 15) << 12);
  }

  static EIDER_ALWAYS_INLINE void unpack(const Block& block, Unit256& unit) {
    unit.scale = half_to_float(scale_bits(block)) * 0.125f;
    clear_minima(unit);
    for (int j = 0; j < 16; ++j) {
      const int scale = block.scales[j / 4] >> (3 * (j % 4)) & 7;
      unit.sub_scale[j] = static_cast<std::int16_t>(2 * scale + 1);
    }
    for (int part = 0; part < 32; ++part) {
      const int high = block.qh[part / 2] >> (4 * (part % 2));
      const int index = block.qs[part] | (high & 7) << 8;
      unpack_iq1_vector(kIq1Grid[index], (high & 8) != 0, unit.code + 8 * part);
    }
  }

  static EIDER_ALWAYS_INLINE void decode(const Block& block, float* values) {
    decode_units<IQ1_M>(block, values);
  }
};
static_assert(Integer256Format<IQ1_M>);

}  // namespace eider
