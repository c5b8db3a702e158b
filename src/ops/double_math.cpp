#include "ops/double_math.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace eider {
namespace {

// Adding it rounds to the nearest integer and leaves that in the last bits of the sum.
constexpr double kRound = 0x1.8p52;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Exact up to 18!, the last factorial below 2^53, but for the rounding of the quotient.
constexpr double inverse_factorial(int n) {
  double factorial = 1;
  for (int i = 2; i <= n; ++i) factorial *= i;
  return 1 / factorial;
}

// c[0] + c[1] x + c[2] x^2 + ...
template <std::size_t N>
double polynomial(const std::array<double, N>& c, double x) {
  double sum = c[N - 1];
  for (std::size_t i = N - 1; i > 0; --i) sum = std::fma(sum, x, c[i - 1]);
  return sum;
}

// a + b as an unevaluated sum, |a| >= |b|: value + rest is exact.
struct TwoDoubles {
  double value, rest;
};
TwoDoubles exact_sum(double a, double b) {
  const double value = a + b;
  return {value, (a - value) + b};
}

double power_of_two(std::int64_t exponent) {
  return std::bit_cast<double>(static_cast<std::uint64_t>(exponent + 1023) << 52);
}

template <std::size_t N, class F>
constexpr std::array<double, N> coefficients(F term) {
  std::array<double, N> c{};
  for (std::size_t i = 0; i < N; ++i) c[i] = term(static_cast<int>(i));
  return c;
}

// Taylor series without their first terms. On the reduced intervals the first omitted term is below 2^-60 of
// the result, so that a minimax fit would gain nothing.
constexpr auto kExpFromSquare = coefficients<13>([](int i) { return inverse_factorial(i + 2); });
constexpr auto kSinFromCube =
    coefficients<8>([](int i) { return (i % 2 == 0 ? -1 : 1) * inverse_factorial(2 * i + 3); });
constexpr auto kCosFromFourth =
    coefficients<8>([](int i) { return (i % 2 == 0 ? 1 : -1) * inverse_factorial(2 * i + 4); });
constexpr auto kAtanhFromCube = coefficients<11>([](int i) { return 2.0 / (2 * i + 3); });

// sin and cos of r + rest, |r| <= pi / 4 and rest its rounding error.
SinCos sincos_reduced(double r, double rest) {
  const double square = r * r;
  const double sin_tail = std::fma(square * r, polynomial(kSinFromCube, square), rest * (1 - 0.5 * square));
  const double half_square = 0.5 * square;
  const double one_minus = 1 - half_square;
  const double lost = (1 - one_minus) - half_square;
  const double cos_tail = std::fma(square * square, polynomial(kCosFromFourth, square), -(r * rest));
  return {r + sin_tail, one_minus + (lost + cos_tail)};
}

}  // namespace

double log64(double x) {
  if (!(x > 0)) return x == 0 ? -kInfinity : kNaN;
  if (x == kInfinity) return x;
  std::int64_t exponent = 0;
  if (x < 0x1p-1022) {
    x *= 0x1p54;
    exponent = -54;
  }
  // x = 2^exponent * m, m in [sqrt(1/2), sqrt(2)).
  const std::uint64_t bits = std::bit_cast<std::uint64_t>(x);
  exponent += static_cast<std::int64_t>(bits >> 52) - 1023;
  double m = std::bit_cast<double>((bits & 0x000fffffffffffffu) | 0x3ff0000000000000u);
  if (m > 0x1.6a09e667f3bcdp0) {
    m *= 0.5;
    ++exponent;
  }
  // log(1 + f) = 2 atanh(s) = 2s + s * tail, and 2s = f - s * f: f carries no error.
  const double f = m - 1;
  const double s = f / (2 + f);
  const double square = s * s;
  const double tail = square * polynomial(kAtanhFromCube, square);
  // The upper part of ln 2 has 32 bits, so that its multiples by an exponent are exact.
  const double n = static_cast<double>(exponent);
  const double small = s * (f - tail) - n * 0x1.a39ef35793c76p-33;
  return n * 0x1.62e42fee00000p-1 + (f - small);
}

double exp64(double x) {
  if (x != x) return x;
  if (x > 710) return kInfinity;
  if (x < -746) return 0;
  const double shifted = std::fma(x, 0x1.71547652b82fep0, kRound);
  const double n = shifted - kRound;
  const double upper = std::fma(n, -0x1.62e42fefa39efp-1, x);  // exact
  const auto [r, rest] = exact_sum(upper, n * -0x1.abc9e3b39803fp-56);
  const double tail = std::fma(r * r, polynomial(kExpFromSquare, r), rest);
  const double mantissa = 1 + (r + tail);
  // 2^n in two factors, for n beyond the exponents of one double; only the second product may round.
  const auto exponent = static_cast<std::int64_t>(n);
  const std::int64_t half = exponent / 2;
  return mantissa * power_of_two(half) * power_of_two(exponent - half);
}

SinCos sincos64(double x) {
  if (!(std::fabs(x) <= 0x1p30)) return {kNaN, kNaN};
  // x = n * pi / 2 + r + rest, pi / 2 in three doubles.
  const double shifted = std::fma(x, 0x1.45f306dc9c883p-1, kRound);
  const double n = shifted - kRound;
  const double upper = std::fma(n, -0x1.921fb54442d18p0, x);  // exact
  const double middle = n * 0x1.1a62633145c07p-54;
  const double middle_rest = std::fma(n, 0x1.1a62633145c07p-54, -middle);
  const double r = upper - middle;
  const double rest = ((upper - r) - middle) - std::fma(n, -0x1.f1976b7ed8fbcp-110, middle_rest);
  const SinCos reduced = sincos_reduced(r, rest);
  switch (std::bit_cast<std::uint64_t>(shifted) & 3) {
    case 0:
      return reduced;
    case 1:
      return {reduced.cos, -reduced.sin};
    case 2:
      return {-reduced.sin, -reduced.cos};
    default:
      return {-reduced.cos, reduced.sin};
  }
}

}  // namespace eider
