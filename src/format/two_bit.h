// The 2-bit codes of Q2_K, Q3_K and TQ2_0: 256 columns in 64 bytes.
//
//   column i: n = i / 128, p = i % 128 / 32, l = i % 32; bits 2p, 2p + 1 of qs[32 * n + l]
#pragma once

#include <cstdint>

#include "base/inline.h"

namespace eider {

/// 0..3, of one column.
EIDER_ALWAYS_INLINE int two_bit_code(const std::uint8_t (&qs)[64], int column) {
  return qs[column / 128 * 32 + column % 32] >> (column % 128 / 32 * 2) & 3;
}

}  // namespace eider
