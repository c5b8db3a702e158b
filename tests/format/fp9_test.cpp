#include "format/fp9.h"

#include <gtest/gtest.h>

#include <cmath>

namespace eider {
namespace {

/// By the definition of e4m3: sign, 4 bits of exponent, 3 of mantissa.
float published_value(int code) {
  const int exponent = code >> 3 & 15, mantissa = code & 7;
  const double magnitude =
      exponent == 0 ? mantissa * std::exp2(-9) : (8 + mantissa) * std::exp2(exponent - 10);
  return static_cast<float>(code < 0x80 ? magnitude : -magnitude);
}

TEST(Fp9, FiniteCodesTimesAScaleAreFp8sBitForBit) {
  int finite = 0;
  for (int code = 0; code < 256; ++code) {
    if (FP8_E4M3::is_nan(static_cast<std::uint8_t>(code))) continue;
    ++finite;
    const Fp9 fp9 = Fp9::of({static_cast<std::uint8_t>(code)});
    EXPECT_EQ(float_bits(fp9.value()), float_bits(published_value(code))) << code;
    float fp8;
    FP8_E4M3::decode({static_cast<std::uint8_t>(code)}, &fp8);
    for (const float scale : {1.0f, 0.00234375f, 3e-7f, 0x1p-127f, 0x1p-140f, 0x1p127f, 123.4f})
      EXPECT_EQ(float_bits(fp9.value() * scale), float_bits(fp8 * scale)) << code << ", " << scale;
  }
  EXPECT_EQ(finite, 254);
}

// What the form is for.
TEST(Fp9, HasNoSubnormals) {
  for (int code = 0; code < 256; ++code) {
    if (FP8_E4M3::is_nan(static_cast<std::uint8_t>(code))) continue;
    const float small = Fp9::of({static_cast<std::uint8_t>(code)}).small_value();
    EXPECT_TRUE(std::isnormal(small) || small == 0) << code;
    EXPECT_EQ(small, published_value(code) * 0x1p-117f) << code;
  }
}

}  // namespace
}  // namespace eider
