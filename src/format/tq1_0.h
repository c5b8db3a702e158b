// TQ1_0: superblocks of 256 columns, the values -1, 0, 1 as digits of base 3, five in a byte.
//
//   byte  0                   48      52     54
//         | qs[48]            | qh[4] | d    |   d: half
//
//   a byte is the fraction byte / 256; its digits in base 3 after the point, less one, are the values:
//     column i < 160: digit i / 32 of qs[i % 32];    160 <= i < 240: digit (i - 160) / 16 of qs[32 + i % 16]
//     column i >= 240: digit (i - 240) / 4 of qh[i % 4]
//   value = d * (digit - 1)
#pragma once

#include "format/format_traits.h"
#include "format/half.h"

namespace eider {

struct TQ1_0 {
  static constexpr Format kFormat = Format::kTQ1_0;
  static constexpr const char* kName = "TQ1_0";
  static constexpr std::int64_t kBlockElems = 256;
  static constexpr ProductRule kProduct = ProductRule::kInteger256;
  static constexpr bool kHasMin = false;

  struct Block {
    std::uint8_t qs[48];
    std::uint8_t qh[4];
    std::uint16_t d;
  };
  static_assert(sizeof(Block) == 54);

  /// Digit `place` of a byte, -1..1.
  static EIDER_ALWAYS_INLINE std::int8_t digit(std::uint8_t packed, int place) {
    constexpr std::uint8_t kPowers[5] = {1, 3, 9, 27, 81};
    const int rest = packed * kPowers[place] & 255;
    return static_cast<std::int8_t>((rest * 3 >> 8) - 1);
  }

  static EIDER_ALWAYS_INLINE void unpack(const Block& block, Unit256& unit) {
    unit.scale = half_to_float(block.d);
    clear_minima(unit);
    for (int j = 0; j < 16; ++j) unit.sub_scale[j] = 1;
    for (int i = 0; i < 160; ++i) unit.code[i] = digit(block.qs[i % 32], i / 32);
    for (int i = 0; i < 80; ++i) unit.code[160 + i] = digit(block.qs[32 + i % 16], i / 16);
    for (int i = 0; i < 16; ++i) unit.code[240 + i] = digit(block.qh[i % 4], i / 4);
  }

  static EIDER_ALWAYS_INLINE void decode(const Block& block, float* values) {
    decode_units<TQ1_0>(block, values);
  }
};
static_assert(Integer256Format<TQ1_0>);

}  // namespace eider
