// half.h against the definitions of the formats: every half and every bfloat16, and every interval between
// two neighbours, so that rounding is checked for each value that could be rounded differently.
#include "format/half.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace eider {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// The value of a finite half by its definition: sign, 5 exponent bits, 10 mantissa bits.
double half_value(std::uint16_t half) {
  const int exponent = half >> 10 & 31;
  const int mantissa = half & 1023;
  const double magnitude =
      exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
  return (half & 0x8000) != 0 ? -magnitude : magnitude;
}

TEST(HalfToFloat, EveryHalf) {
  for (unsigned code = 0; code <= 0xffff; ++code) {
    const auto half = static_cast<std::uint16_t>(code);
    const float value = half_to_float(half);
    if ((code & 0x7fff) > 0x7c00) {
      EXPECT_TRUE(std::isnan(value)) << code;
    } else if ((code & 0x7fff) == 0x7c00) {
      EXPECT_EQ(value, (code & 0x8000) != 0 ? -kInfinity : kInfinity);
    } else {
      EXPECT_EQ(static_cast<double>(value), half_value(half)) << code;
      EXPECT_EQ(std::signbit(value), (code & 0x8000) != 0) << code;
    }
  }
}

// `upper` and `lower` are neighbouring codes with magnitudes lower < middle < upper: all floats between must
// go to the nearer one, the middle to the even one. Checked for both signs at both ends and around the
// middle.
template <class Round>
void expect_rounding_between(Round round, float lower, float middle, float upper, unsigned lower_code,
                             unsigned sign_bit) {
  const unsigned upper_code = lower_code + 1;
  const unsigned even_code = lower_code % 2 == 0 ? lower_code : upper_code;
  for (const float sign : {1.0f, -1.0f}) {
    const unsigned sign_code = sign < 0 ? sign_bit : 0;
    EXPECT_EQ(round(sign * lower), lower_code | sign_code) << lower;
    EXPECT_EQ(round(sign * std::nextafter(lower, kInfinity)), lower_code | sign_code) << lower;
    EXPECT_EQ(round(sign * std::nextafter(middle, 0.0f)), lower_code | sign_code) << lower;
    EXPECT_EQ(round(sign * middle), even_code | sign_code) << lower;
    EXPECT_EQ(round(sign * std::nextafter(middle, kInfinity)), upper_code | sign_code) << lower;
    EXPECT_EQ(round(sign * std::nextafter(upper, 0.0f)), upper_code | sign_code) << lower;
  }
}

// The last interval ends where the next half would be, 65536: infinity begins at its middle.
TEST(FloatToHalf, RoundsToNearestEvenInEveryInterval) {
  for (unsigned code = 0; code < 0x7c00; ++code) {
    const double lower = half_value(static_cast<std::uint16_t>(code));
    const double upper = code == 0x7bff ? 65536 : half_value(static_cast<std::uint16_t>(code + 1));
    expect_rounding_between([](float x) { return float_to_half(x); }, static_cast<float>(lower),
                            static_cast<float>((lower + upper) / 2), static_cast<float>(upper), code, 0x8000);
  }
}

TEST(FloatToHalf, SpecialValues) {
  EXPECT_EQ(float_to_half(kInfinity), 0x7c00);
  EXPECT_EQ(float_to_half(-kInfinity), 0xfc00);
  EXPECT_EQ(float_to_half(std::numeric_limits<float>::max()), 0x7c00);
  EXPECT_EQ(float_to_half(65520.0f), 0x7c00);
  EXPECT_EQ(float_to_half(0x1p-149f), 0);
  EXPECT_EQ(float_to_half(-0x1p-149f), 0x8000);
  for (const std::uint32_t nan : {0x7f800001u, 0x7fc00000u, 0xff800001u, 0xffffffffu})
    EXPECT_TRUE(std::isnan(half_to_float(float_to_half(bits_float(nan))))) << nan;
}

TEST(Bfloat16ToFloat, EveryCodeIsTheUpperHalfOfAFloat) {
  for (unsigned code = 0; code <= 0xffff; ++code) {
    const float value = bfloat16_to_float(static_cast<std::uint16_t>(code));
    if ((code & 0x7fff) > 0x7f80)
      EXPECT_TRUE(std::isnan(value));
    else
      EXPECT_EQ(float_bits(value), code << 16);
  }
}

TEST(FloatToBfloat16, RoundsToNearestEvenInEveryInterval) {
  // A bfloat16 is the upper half of a float: the next 16 bits are the place in the interval.
  for (unsigned code = 0; code < 0x7f80; ++code)
    expect_rounding_between([](float x) { return float_to_bfloat16(x); }, bits_float(code << 16),
                            bits_float(code << 16 | 0x8000), bits_float((code + 1) << 16), code, 0x8000);
}

TEST(FloatToBfloat16, SpecialValues) {
  EXPECT_EQ(float_to_bfloat16(kInfinity), 0x7f80);
  EXPECT_EQ(float_to_bfloat16(-kInfinity), 0xff80);
  EXPECT_EQ(float_to_bfloat16(std::numeric_limits<float>::max()), 0x7f80);
  for (const std::uint32_t nan : {0x7f800001u, 0x7fc00000u, 0xff800001u, 0xffffffffu})
    EXPECT_TRUE(std::isnan(bfloat16_to_float(float_to_bfloat16(bits_float(nan))))) << nan;
}

}  // namespace
}  // namespace eider
