// The 4-bit codes of IQ4_NL, IQ4_XS, MXFP4 and NVFP4: numbers of a value in a table of 16. The tables are not
// inline: files of several instruction sets must not share symbols.
#pragma once

#include <cstdint>

#include "base/inline.h"

namespace eider {

/// IQ4_NL and IQ4_XS: steps that grow with the distance from zero.
constexpr std::int8_t kIq4Values[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                        1,    13,   25,  38,  53,  69,  89,  113};
/// MXFP4 and NVFP4: twice the values of E2M1, which makes them integers; -0 is 0.
constexpr std::int8_t kE2m1Values[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

/// Values of 2 * bytes columns: low nibbles are columns 0 .. bytes - 1, high nibbles the rest.
EIDER_ALWAYS_INLINE void unpack_four_bit(const std::uint8_t* qs, int bytes, const std::int8_t (&values)[16],
                                         std::int8_t* codes) {
  for (int i = 0; i < bytes; ++i) {
    codes[i] = values[qs[i] & 15];
    codes[bytes + i] = values[qs[i] >> 4];
  }
}

}  // namespace eider
