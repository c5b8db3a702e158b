// The double-precision functions against the 64-bit mantissas of x86's long double (elsewhere: whatever long
// double is).
#include "ops/double_math.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

namespace eider {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

double ulp_error(double value, long double reference) {
  if (static_cast<double>(reference) == value) return 0;
  const int exponent = std::max(std::ilogb(reference), -1022) - 52;
  return static_cast<double>(std::abs(value - reference) * std::ldexp(1.0L, -exponent));
}

// Worst error in ulp over `count` arguments drawn uniformly from [low, high].
template <class F, class G>
double worst_error(F function, G reference, double low, double high, int count = 200000) {
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> uniform(low, high);
  double worst = 0;
  for (int i = 0; i < count; ++i) {
    const double x = uniform(random);
    worst = std::max(worst, ulp_error(function(x), reference(static_cast<long double>(x))));
  }
  return worst;
}

long double log_reference(long double x) {
  return std::log(x);
}
long double exp_reference(long double x) {
  return std::exp(x);
}
long double sin_reference(long double x) {
  return std::sin(x);
}
long double cos_reference(long double x) {
  return std::cos(x);
}
double sin64(double x) {
  return sincos64(x).sin;
}
double cos64(double x) {
  return sincos64(x).cos;
}

TEST(Log64, WithinOneUlp) {
  EXPECT_LE(worst_error(log64, log_reference, 0.5, 2), 1);
  EXPECT_LE(worst_error(log64, log_reference, 1 - 1e-6, 1 + 1e-6), 1);
  EXPECT_LE(worst_error(log64, log_reference, 0, 1e6), 1);
  EXPECT_LE(worst_error(log64, log_reference, 0, 1e300), 1);
  EXPECT_LE(worst_error(log64, log_reference, 0, 1e-310), 1);
}

TEST(Log64, SpecialValues) {
  EXPECT_EQ(log64(1), 0);
  EXPECT_EQ(log64(0.0), -kInfinity);
  EXPECT_EQ(log64(-0.0), -kInfinity);
  EXPECT_EQ(log64(kInfinity), kInfinity);
  EXPECT_TRUE(std::isnan(log64(-1)));
  EXPECT_TRUE(std::isnan(log64(-kInfinity)));
  EXPECT_TRUE(std::isnan(log64(std::nan(""))));
}

TEST(Exp64, WithinOneUlp) {
  EXPECT_LE(worst_error(exp64, exp_reference, -20, 20), 1);
  EXPECT_LE(worst_error(exp64, exp_reference, -0.4, 0.4), 1);
  EXPECT_LE(worst_error(exp64, exp_reference, -745, 709.7), 1);
}

TEST(Exp64, SpecialValues) {
  EXPECT_EQ(exp64(0.0), 1);
  EXPECT_EQ(exp64(-0.0), 1);
  EXPECT_EQ(exp64(kInfinity), kInfinity);
  EXPECT_EQ(exp64(-kInfinity), 0);
  EXPECT_EQ(exp64(709.79), kInfinity);
  EXPECT_EQ(exp64(-745.13), 0x1p-1074);
  EXPECT_TRUE(std::isnan(exp64(std::nan(""))));
}

TEST(SinCos64, WithinOneUlp) {
  for (const double bound : {0.8, 10.0, 0x1p24, 0x1p30}) {
    EXPECT_LE(worst_error(sin64, sin_reference, -bound, bound), 1) << bound;
    EXPECT_LE(worst_error(cos64, cos_reference, -bound, bound), 1) << bound;
  }
}

// Doubles nearest to multiples of pi / 2: all digits of the result come from beyond the first double of pi.
TEST(SinCos64, WithinOneUlpBesideMultiplesOfHalfPi) {
  for (int n = 1; n < (1 << 23); n += 997) {
    const double x = n * 0x1.921fb54442d18p0;
    EXPECT_LE(ulp_error(sin64(x), sin_reference(x)), 1) << n;
    EXPECT_LE(ulp_error(cos64(x), cos_reference(x)), 1) << n;
  }
}

// Published digits: sin and cos of 10^6 (any reference above could be wrong in the same way as ours).
TEST(SinCos64, KnownValues) {
  EXPECT_EQ(sin64(1e6), -0.34999350217129295211765248678);
  EXPECT_EQ(cos64(1e6), 0.93675212753314478693853253507);
  EXPECT_EQ(cos64(0), 1);
}

TEST(SinCos64, RefusesAnglesBeyondItsReduction) {
  for (const double x : {0x1.0000000000001p30, kInfinity, -kInfinity, std::nan("")}) {
    EXPECT_TRUE(std::isnan(sin64(x)));
    EXPECT_TRUE(std::isnan(cos64(x)));
  }
}

}  // namespace
}  // namespace eider
