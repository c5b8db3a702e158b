// The 5-bit codes that Q5_0 and Q5_1 share.
#pragma once

#include <cstdint>

#include "base/inline.h"

namespace eider {

/// codes[i] = (nibble of qs | bit i of qh << 4) - offset for 32 columns; low nibbles are columns 0..15.
EIDER_ALWAYS_INLINE void unpack_five_bit(const std::uint8_t (&qs)[16], const std::uint8_t (&qh)[4],
                                         int offset, std::int8_t (&codes)[32]) {
  for (int i = 0; i < 16; ++i) {
    const int fifth_bit_first = (qh[i / 8] >> (i % 8)) & 1;
    const int fifth_bit_second = (qh[2 + i / 8] >> (i % 8)) & 1;
    codes[i] = static_cast<std::int8_t>(((qs[i] & 15) | (fifth_bit_first << 4)) - offset);
    codes[i + 16] = static_cast<std::int8_t>(((qs[i] >> 4) | (fifth_bit_second << 4)) - offset);
  }
}

}  // namespace eider
