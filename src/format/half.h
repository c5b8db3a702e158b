// IEEE binary16 and bfloat16 to and from float, by integer operations alone: the same bits on every CPU, and
// loops over them vectorise.
#pragma once

#include <bit>
#include <cstdint>

#include "base/inline.h"

namespace eider {

/// Exact. Infinities and NaN stay such.
EIDER_ALWAYS_INLINE float half_to_float(std::uint16_t half) {
  // The exponent is moved by a multiplication with 2^112, which also makes half's denormals normal floats.
  const std::uint32_t sign = (half & 0x8000u) << 16;
  const std::uint32_t magnitude = (half & 0x7fffu) << 13;
  const float scaled = std::bit_cast<float>(magnitude) * 0x1p112f;
  const std::uint32_t special =
      magnitude >= 0x0f800000u ? 0x7f800000u : 0u;  // inf and NaN keep an all-ones exponent
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(scaled) | special | sign);
}

/// Rounds to nearest even; overflow gives infinity, denormals are kept, NaN stays NaN.
EIDER_ALWAYS_INLINE std::uint16_t float_to_half(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000u;
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  // Normal halves: rebias and round in integers. A carry out of the mantissa is the right exponent, or
  // infinity.
  const std::uint32_t normal = (magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
  // Denormal halves: adding 0.5 rounds at bit 2^-24, the last place of a denormal half.
  const std::uint32_t denormal =
      std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - 0x3f000000u;
  const std::uint32_t finite = magnitude < 0x38800000u ? denormal : normal;
  const std::uint32_t overflow = magnitude > 0x7f800000u ? 0x7e00u : 0x7c00u;
  return static_cast<std::uint16_t>(sign | (magnitude >= 0x47800000u ? overflow : finite));
}

/// Exact.
EIDER_ALWAYS_INLINE float bfloat16_to_float(std::uint16_t value) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(value) << 16);
}

/// Rounds to nearest even; NaN stays NaN.
EIDER_ALWAYS_INLINE std::uint16_t float_to_bfloat16(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<std::uint16_t>((bits >> 16) | 0x40u);
  return static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

}  // namespace eider
