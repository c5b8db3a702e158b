// A float's bits, and back. std::bit_cast would do, but it is a function that a compiler may emit on its own,
// and kernels of several instruction sets need it (inline.h says why that matters).
#pragma once

#include <cstdint>

#include "base/inline.h"

namespace eider {

EIDER_ALWAYS_INLINE std::uint32_t float_bits(float value) {
  return __builtin_bit_cast(std::uint32_t, value);
}
EIDER_ALWAYS_INLINE float bits_float(std::uint32_t bits) {
  return __builtin_bit_cast(float, bits);
}

}  // namespace eider
