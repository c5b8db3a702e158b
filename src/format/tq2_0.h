// TQ2_0: superblocks of 256 columns, the values -1, 0, 1 in 2 bits.
//
//   byte  0                   64     66
//         | qs[64]            | d    |   d: half; qs: two_bit.h
//
//   column i: value = d * (code - 1); code 3, which no quantiser writes, is 2 * d
#pragma once

#include "format/format_traits.h"
#include "format/half.h"
#include "format/two_bit.h"

namespace eider {

struct TQ2_0 {
  static constexpr Format kFormat = Format::kTQ2_0;
  static constexpr const char* kName = "TQ2_0";
  static constexpr std::int64_t kBlockElems = 256;
  static constexpr ProductRule kProduct = ProductRule::kInteger256;
  static constexpr bool kHasMin = false;

  struct Block {
    std::uint8_t qs[64];
    std::uint16_t d;
  };
  static_assert(sizeof(Block) == 66);

  static EIDER_ALWAYS_INLINE void unpack(const Block& block, Unit256& unit) {
    unit.scale = half_to_float(block.d);
    clear_minima(unit);
    for (int j = 0; j < 16; ++j) unit.sub_scale[j] = 1;
    for (int i = 0; i < 256; ++i) unit.code[i] = static_cast<std::int8_t>(two_bit_code(block.qs, i) - 1);
  }

  static EIDER_ALWAYS_INLINE void decode(const Block& block, float* values) {
    decode_units<TQ2_0>(block, values);
  }
};
static_assert(Integer256Format<TQ2_0>);

}  // namespace eider
