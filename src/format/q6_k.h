// Q6_K: superblocks of 256 columns, signed 6-bit codes; each 16 columns have an 8-bit scale.
//
//   byte  0                 128          192          208    210
//         | ql[128]         | qh[64]     | scales[16] | d    |   scales: int8; d: half
//
//   column i: n = i / 128, p = i % 128 / 32, l = i % 32
//     low  = nibble p / 2 of ql[64 * n + 32 * (p % 2) + l]
//     high = bits 2p, 2p + 1 of qh[32 * n + l]
//     value = d * scales[i / 16] * ((low | high << 4) - 32)
#pragma once

#include "format/format_traits.h"
#include "format/half.h"

namespace eider {

struct Q6_K {
  static constexpr Format kFormat = Format::kQ6_K;
  static constexpr const char* kName = "Q6_K";
  static constexpr std::int64_t kBlockElems = 256;
  static constexpr ProductRule kProduct = ProductRule::kInteger256;
  static constexpr bool kHasMin = false;

  struct Block {
    std::uint8_t ql[128];
    std::uint8_t qh[64];
    std::int8_t scales[16];
    std::uint16_t d;
  };
  static_assert(sizeof(Block) == 210);

  static EIDER_ALWAYS_INLINE void unpack(const Block& block, Unit256& unit) {
    unit.scale = half_to_float(block.d);
    clear_minima(unit);
    for (int j = 0; j < 16; ++j) unit.sub_scale[j] = block.scales[j];
    for (int group = 0; group < 8; ++group) {
      const int n = group / 4;
      const int p = group % 4;
      for (int l = 0; l < 32; ++l) {
        const int low = block.ql[64 * n + 32 * (p % 2) + l] >> (4 * (p / 2)) & 15;
        const int high = block.qh[32 * n + l] >> (2 * p) & 3;
        unit.code[32 * group + l] = static_cast<std::int8_t>((low | high << 4) - 32);
      }
    }
  }

  static EIDER_ALWAYS_INLINE void decode(const Block& block, float* values) {
    decode_units<Q6_K>(block, values);
  }
};
static_assert(Integer256Format<Q6_K>);

}  // namespace eider
