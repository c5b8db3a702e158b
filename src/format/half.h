// IEEE binary16 and bfloat16 to and from float, by integer operations alone: the same bits on every CPU, and
// loops over them vectorise.
#pragma once

#include <cstdint>

#include "base/float_bits.h"
#include "base/inline.h"

namespace eider {

/// Exact. Infinities and NaN stay such.
EIDER_ALWAYS_INLINE float half_to_float(std::uint16_t half) {
  // The exponent is moved by a multiplication with 2^112, which also makes half's denormals normal floats.
  const std::uint32_t sign = (half & 0x8000u) << 16;
  const std::uint32_t magnitude = (half & 0x7fffu) << 13;
  const float scaled = bits_float(magnitude) * 0x1p112f;
  const std::uint32_t special =
      magnitude >= 0x0f800000u ? 0x7f800000u : 0u;  // inf and NaN keep an all-ones exponent
  return bits_float(float_bits(scaled) | special | sign);
}

/// Rounds to nearest even; overflow gives infinity, denormals are kept, NaN stays NaN.
EIDER_ALWAYS_INLINE std::uint16_t float_to_half(float value) {
  const std::uint32_t bits = float_bits(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000u;
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  // Normal halves: rebias and round in integers. A carry out of the mantissa is the right exponent, or
  // infinity.
  const std::uint32_t normal = (magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
  // Denormal halves: adding 0.5 rounds at bit 2^-24, the last place of a denormal half.
  const std::uint32_t denormal = float_bits(bits_float(magnitude) + 0.5f) - 0x3f000000u;
  // A select of bits: GCC would move the addition into a branch of a select of values.
  const std::uint32_t is_denormal = magnitude < 0x38800000u ? 0xffffffffu : 0u;
  const std::uint32_t finite = (denormal & is_denormal) | (normal & ~is_denormal);
  const std::uint32_t overflow = magnitude > 0x7f800000u ? 0x7e00u : 0x7c00u;
  return static_cast<std::uint16_t>(sign | (magnitude >= 0x47800000u ? overflow : finite));
}

/// Exact.
EIDER_ALWAYS_INLINE float bfloat16_to_float(std::uint16_t value) {
  return bits_float(static_cast<std::uint32_t>(value) << 16);
}

/// Rounds to nearest even; NaN stays NaN.
EIDER_ALWAYS_INLINE std::uint16_t float_to_bfloat16(float value) {
  const std::uint32_t bits = float_bits(value);
  const std::uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  const std::uint32_t nan = (bits >> 16) | 0x40u;
  return static_cast<std::uint16_t>((bits & 0x7fffffffu) > 0x7f800000u ? nan : rounded);
}

}  // namespace eider
