// fp9: FP8 (fp8_e4m3.h) in 9 bits, which CPUs without FP8 instructions take apart in fewer steps: the
// exponent has a bit more, so that what e4m3 has as subnormals is normal, and the sign lies in a plane of its
// own. A packed form alone: no file has it.
//
//   bit of the magnitude byte   7        3 2        0     sign plane: one bit a weight
//                               | exponent | mantissa |   exponent bias 10
//
//   value = (1 + mantissa / 8) * 2^(exponent - 10), the magnitude 0 is 0; exponents are 1 to 18
#pragma once

#include <cstdint>

#include "base/float_bits.h"
#include "format/fp8_e4m3.h"

namespace eider {

struct Fp9 {
  std::uint8_t magnitude;
  bool negative;

  /// The same value; `code` is not NaN.
  static constexpr Fp9 of(FP8_E4M3::Block code) {
    constexpr std::uint8_t kSubnormals[8] = {0, 8, 16, 20, 24, 26, 28, 30};  // mantissa * 2^-9
    const int magnitude = code.code & 0x7f;
    return {static_cast<std::uint8_t>(magnitude < 8 ? kSubnormals[magnitude] : magnitude + 3 * 8),
            (code.code & 0x80) != 0};
  }

  /// The value times 2^-117: moving the bits is all that it takes.
  float small_value() const {
    return bits_float((negative ? 0x80000000u : 0u) | static_cast<std::uint32_t>(magnitude) << 20);
  }
  float value() const { return small_value() * 0x1p117f; }
};

}  // namespace eider
