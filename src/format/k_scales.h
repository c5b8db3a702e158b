// The 6-bit scales and minima that Q4_K and Q5_K share: eight sub-blocks of 32 columns, 12 bytes.
//
//   byte j        (j < 4)  scale j in bits 0-5, the upper two bits of scale j + 4 in bits 6-7
//   byte j + 4    (j < 4)  minimum j in bits 0-5, the upper two bits of minimum j + 4 in bits 6-7
//   byte j + 8    (j < 4)  the lower four bits of scale j + 4 in bits 0-3, of minimum j + 4 in bits 4-7
#pragma once

#include <cstdint>

#include "base/inline.h"
#include "format/format_traits.h"

namespace eider {

/// Fills sub_scale and sub_min; each of the eight values covers two sub-blocks of 16.
EIDER_ALWAYS_INLINE void unpack_k_scales(const std::uint8_t (&packed)[12], Unit256& unit) {
  for (int j = 0; j < 4; ++j) {
    const int scales[2] = {packed[j] & 63, (packed[j + 8] & 15) | (packed[j] >> 6 << 4)};
    const int minima[2] = {packed[j + 4] & 63, (packed[j + 8] >> 4) | (packed[j + 4] >> 6 << 4)};
    for (int half = 0; half < 2; ++half) {
      const int sub_block = 2 * (j + 4 * half);
      unit.sub_scale[sub_block] = unit.sub_scale[sub_block + 1] = static_cast<std::int16_t>(scales[half]);
      unit.sub_min[sub_block] = unit.sub_min[sub_block + 1] = static_cast<std::int16_t>(minima[half]);
    }
  }
}

}  // namespace eider
