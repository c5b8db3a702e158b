// What the IQ formats share: columns stand in vectors of 4 or 8 values out of a grid (codebooks.h), with the
// signs apart. A vector is one number of the grid's array; its places are small codes of the values below.
//
//   IQ1: 8 places of 2 bits    IQ2: 8 places of 2 bits    IQ3: 4 places of 3 bits    place k at bit 2k or 3k
#pragma once

#include <cstdint>

#include "base/inline.h"
#include "format/codebooks.h"

namespace eider {

/// -1, 0, 1.
EIDER_ALWAYS_INLINE int iq1_value(std::uint16_t vector, int place) {
  return (vector >> (2 * place) & 3) - 1;
}
/// 8, 25, 43.
EIDER_ALWAYS_INLINE int iq2_value(std::uint16_t vector, int place) {
  const int code = vector >> (2 * place) & 3;
  return 8 + 17 * code + (code >> 1);
}
/// IQ3_S: 1, 3, .. 15.
EIDER_ALWAYS_INLINE int iq3_s_value(std::uint16_t vector, int place) {
  return 2 * (vector >> (3 * place) & 7) + 1;
}
/// IQ3_XXS, the half of its even values: 2, 6, .. 26, 31.
EIDER_ALWAYS_INLINE int iq3_xxs_value(std::uint16_t vector, int place) {
  const int code = vector >> (3 * place) & 7;
  return 4 * code + 2 + (code == 7 ? 1 : 0);
}

/// The signs of 8 columns, bit k set where column k is negative, from the 7 bits that IQ2_XXS, IQ2_XS and
/// IQ3_XXS store: the eighth makes the number of negative columns even.
EIDER_ALWAYS_INLINE int expand_signs(int stored) {
  int parity = stored ^ stored >> 4;
  parity ^= parity >> 2;
  parity ^= parity >> 1;
  return stored | (parity & 1) << 7;
}

/// codes[k] = value with the sign of bit k.
EIDER_ALWAYS_INLINE std::int8_t signed_code(int value, int signs, int k) {
  return static_cast<std::int8_t>((signs >> k & 1) != 0 ? -value : value);
}

/// 8 columns of an IQ2 format.
EIDER_ALWAYS_INLINE void unpack_iq2_vector(std::uint16_t vector, int signs, std::int8_t* codes) {
  for (int k = 0; k < 8; ++k) codes[k] = signed_code(iq2_value(vector, k), signs, k);
}

/// 8 columns of an IQ1 format in eighths: the grid's values are shifted up or down by one eighth.
EIDER_ALWAYS_INLINE void unpack_iq1_vector(std::uint16_t vector, bool down, std::int8_t* codes) {
  for (int k = 0; k < 8; ++k) codes[k] = static_cast<std::int8_t>(8 * iq1_value(vector, k) + (down ? -1 : 1));
}

/// The word of IQ2_XXS and IQ3_XXS for 32 columns: 7 bits of signs for each 8 columns, then a 4-bit scale.
struct SignsAndScale {
  std::uint32_t word;

  /// Of columns 8 * part .. 8 * part + 7, expanded.
  EIDER_ALWAYS_INLINE int signs(int part) const {
    return expand_signs(static_cast<int>(word >> (7 * part) & 127));
  }
  EIDER_ALWAYS_INLINE int scale() const { return static_cast<int>(word >> 28); }
};
EIDER_ALWAYS_INLINE SignsAndScale load_signs_and_scale(const std::uint8_t* bytes) {
  return {static_cast<std::uint32_t>(bytes[0]) | static_cast<std::uint32_t>(bytes[1]) << 8 |
          static_cast<std::uint32_t>(bytes[2]) << 16 | static_cast<std::uint32_t>(bytes[3]) << 24};
}

}  // namespace eider
