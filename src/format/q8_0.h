// Q8_0: blocks of 32 columns, signed bytes with a scale.
//
//   byte  0      2                         34
//         | d    | qs[32]                  |   d: half; qs: int8
//
//   column i: value = d * qs[i]
#pragma once

#include "format/format_traits.h"
#include "format/half.h"

namespace eider {

struct Q8_0 {
  static constexpr Format kFormat = Format::kQ8_0;
  static constexpr const char* kName = "Q8_0";
  static constexpr std::int64_t kBlockElems = 32;
  static constexpr ProductRule kProduct = ProductRule::kInteger32;
  static constexpr bool kHasMin = false;

  struct Block {
    std::uint16_t d;
    std::int8_t qs[32];
  };
  static_assert(sizeof(Block) == 34);

  static EIDER_ALWAYS_INLINE void unpack(const Block& block, Unit32& unit) {
    unit.scale = half_to_float(block.d);
    unit.min = 0;
    for (int i = 0; i < 32; ++i) unit.code[i] = block.qs[i];
  }

  static EIDER_ALWAYS_INLINE void decode(const Block& block, float* values) {
    decode_units<Q8_0>(block, values);
  }
};
static_assert(Integer32Format<Q8_0>);

}  // namespace eider
