// The scalar functions against double-precision references and stated bounds, and the orders of addition
// against their recursive definitions. EIDER_EXHAUSTIVE=1 in the environment walks all 2^32 floats instead of
// a dense sample.
#include "ops/numerics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

namespace eider::numerics {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

// Calls visit(x) for a prime stride of all bit patterns, or for each one.
template <class Visit>
void for_each_float(Visit visit) {
  const std::uint64_t stride = std::getenv("EIDER_EXHAUSTIVE") != nullptr ? 1 : 1009;
  for (std::uint64_t bits = 0; bits <= 0xffffffffu; bits += stride)
    visit(bits_float(static_cast<std::uint32_t>(bits)));
}

// Distance of two floats in units of the last place of the reference, 2^-149 among the denormals.
double ulp_error(float value, double reference) {
  if (static_cast<float>(reference) == value) return 0;  // also both infinite
  if (std::isinf(value)) return std::abs(reference) > 0x1.ffffffp127 * (1 - 0x1p-23) ? 1 : HUGE_VAL;
  const int exponent = std::max(std::ilogb(reference), -126) - 23;
  return std::abs(value - reference) * std::ldexp(1.0, -exponent);
}

struct Worst {
  double error = 0;
  float at = 0;
  void see(double candidate, float x) {
    if (candidate <= error) return;
    error = candidate;
    at = x;
  }
};

// The worst error in ulp over all x but NaN where |reference| >= smallest; NaN must give NaN.
template <class F, class G>
Worst worst_error(F function, G reference, double smallest = 0) {
  Worst worst;
  for_each_float([&](float x) {
    const float value = function(x);
    if (std::isnan(x) != std::isnan(value)) worst.see(HUGE_VAL, x);
    if (std::isnan(x)) return;
    const double exact = reference(static_cast<double>(x));
    if (std::abs(exact) >= smallest) worst.see(ulp_error(value, exact), x);
  });
  return worst;
}

void expect_within(double bound, const Worst& worst) {
  std::printf("  worst error %.4f at %a\n", worst.error, static_cast<double>(worst.at));
  EXPECT_LE(worst.error, bound) << "at " << worst.at;
}

TEST(Exp, WithinOneUlpOfAllFloats) {
  expect_within(1.0, worst_error([](float x) { return exp32(x); }, [](double x) { return std::exp(x); }));
}

TEST(Exp, SpecialValues) {
  EXPECT_EQ(exp32(0.0f), 1.0f);
  EXPECT_EQ(exp32(-0.0f), 1.0f);
  EXPECT_EQ(float_bits(exp32(-kInfinity)), 0u);
  EXPECT_EQ(exp32(kInfinity), kInfinity);
  EXPECT_TRUE(std::isnan(exp32(kNaN)));
  EXPECT_TRUE(std::isnan(exp32(bits_float(0xffffffffu))));
  EXPECT_EQ(exp32(88.72284f), kInfinity);  // first float whose exp rounds to infinity
  EXPECT_LT(exp32(88.72283f), kInfinity);
  EXPECT_EQ(exp32(-103.0f), 0x1p-149f);  // smallest denormal
  EXPECT_EQ(exp32(-104.0f), 0.0f);
}

TEST(Sigmoid, WithinThreeUlpWhereNotTiny) {
  expect_within(3.0, worst_error([](float x) { return sigmoid32(x); },
                                 [](double x) { return 1 / (1 + std::exp(-x)); }, 0x1p-100));
}

TEST(Tanh, WithinThreeUlpOfAllFloats) {
  expect_within(3.0, worst_error([](float x) { return tanh32(x); }, [](double x) { return std::tanh(x); }));
}

TEST(Tanh, SpecialValues) {
  EXPECT_EQ(float_bits(tanh32(0.0f)), 0u);
  EXPECT_EQ(float_bits(tanh32(-0.0f)), 0x80000000u);
  EXPECT_EQ(tanh32(kInfinity), 1.0f);
  EXPECT_EQ(tanh32(-kInfinity), -1.0f);
  EXPECT_EQ(tanh32(0x1p-149f), 0x1p-149f);
}

TEST(Softplus, WithinThreeUlpOfAllFloats) {
  const auto reference = [](double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); };
  expect_within(3.0, worst_error([](float x) { return softplus32(x); }, reference));
}

TEST(Silu, WithinThreeUlpWhereNotTiny) {
  // silu(-inf) is NaN by its formula, -inf / inf.
  EXPECT_TRUE(std::isnan(silu32(-kInfinity)));
  expect_within(3.0, worst_error([](float x) { return x == -kInfinity ? -0.0f : silu32(x); },
                                 [](double x) { return std::isinf(x) && x < 0 ? 0 : x / (1 + std::exp(-x)); },
                                 0x1p-100));
}

TEST(GeluTanh, AbsoluteErrorRelativeToX) {
  Worst worst;
  for_each_float([&](float x) {
    if (!std::isfinite(x)) return;
    const double exact = [](double d) {
      const double u = std::sqrt(2 / M_PI) * (d + 0.044715 * d * d * d);
      return d / (1 + std::exp(-2 * u));
    }(x);
    // The result is rounded to a multiple of 2^-149 however small x is.
    const double error = std::max(std::abs(gelu_tanh32(x) - exact) - 0x1p-150, 0.0);
    if (x != 0) worst.see(error / (0x1p-24 * std::abs(static_cast<double>(x))), x);
  });
  expect_within(4.0, worst);
  EXPECT_EQ(float_bits(gelu_tanh32(0.0f)), 0u);
}

TEST(SoftCap, IsTheCapTimesTheTanhOfTheQuotient) {
  for (const float cap : {30.0f, 50.0f}) {
    for (float x = -400; x <= 400; x += 0.37f) {
      const double exact = cap * std::tanh(static_cast<double>(x) / cap);
      EXPECT_NEAR(soft_cap32(x, cap), exact, 4e-7 * std::abs(exact)) << x;
    }
    EXPECT_EQ(soft_cap32(kInfinity, cap), cap);
  }
}

#if defined(__x86_64__)
// Where the always-inline functions land in a function compiled for fused multiply-add instructions and wide
// vectors, they are the text that an instruction set's own file compiles.
template <class F>
__attribute__((target("avx2,fma"))) void apply_fused(F function, const std::vector<float>& in, float* out) {
  for (std::size_t i = 0; i < in.size(); ++i) out[i] = function(in[i]);
}

template <class F>
void expect_same_bits(const char* name, F function) {
  std::vector<float> in;
  for (std::uint64_t bits = 0; bits <= 0xffffffffu; bits += 4099)
    in.push_back(bits_float(static_cast<std::uint32_t>(bits)));
  std::vector<float> fused(in.size());
  apply_fused(function, in, fused.data());
  for (std::size_t i = 0; i < in.size(); ++i) {
    const float baseline = function(in[i]);
    if (std::isnan(baseline) && std::isnan(fused[i])) continue;
    ASSERT_EQ(float_bits(baseline), float_bits(fused[i])) << name << "(" << in[i] << ")";
  }
}

#define EIDER_INLINE_LAMBDA(function)          \
  [](float x) __attribute__((always_inline)) { \
    return function(x);                        \
  }

TEST(Functions, SameBitsWithAndWithoutFmaInstructions) {
  if (!__builtin_cpu_supports("fma") || !__builtin_cpu_supports("avx2"))
    GTEST_SKIP() << "this CPU has no FMA";
  expect_same_bits("exp32", EIDER_INLINE_LAMBDA(exp32));
  expect_same_bits("sigmoid32", EIDER_INLINE_LAMBDA(sigmoid32));
  expect_same_bits("silu32", EIDER_INLINE_LAMBDA(silu32));
  expect_same_bits("gelu_tanh32", EIDER_INLINE_LAMBDA(gelu_tanh32));
  expect_same_bits("tanh32", EIDER_INLINE_LAMBDA(tanh32));
  expect_same_bits("softplus32", EIDER_INLINE_LAMBDA(softplus32));
}
#endif

float recursive_tree(const float* p, std::size_t n) {
  if (n == 1) return p[0];
  std::size_t m = 1;
  while (2 * m < n) m *= 2;
  return recursive_tree(p, m) + recursive_tree(p + m, n - m);
}

TEST(Tree, EqualsItsRecursiveDefinition) {
  std::mt19937 random(1);
  std::vector<float> p(300);
  for (float& value : p)
    value = std::ldexp(static_cast<float>(random()) * 0x1p-31f - 1, static_cast<int>(random() % 40) - 20);
  for (std::size_t n = 1; n <= p.size(); ++n) {
    TreeSum<float> sum;
    for (std::size_t i = 0; i < n; ++i) sum.add(p[i]);
    EXPECT_EQ(float_bits(sum.total()), float_bits(recursive_tree(p.data(), n))) << n;
  }
}

// A total may be asked for at any time, and asking changes nothing.
TEST(Tree, TotalIsConst) {
  TreeSum<float> sum;
  sum.add(-0.0f);
  EXPECT_EQ(float_bits(sum.total()), 0x80000000u);
  sum.add(1.0f);
  sum.add(2.0f);
  EXPECT_EQ(sum.total(), 3.0f);
  sum.add(3.0f);
  EXPECT_EQ(sum.total(), 6.0f);
}

TEST(Fold, AddsHalvesOntoHalves) {
  std::mt19937 random(2);
  std::vector<float> r(32);
  for (float& value : r) value = static_cast<float>(random()) * 0x1p-20f - 1000;
  std::vector<float> expected = r;
  while (expected.size() > 1) {
    std::vector<float> next;
    for (std::size_t j = 0; j < expected.size() / 2; ++j)
      next.push_back(expected[j] + expected[j + expected.size() / 2]);
    expected = next;
  }
  EXPECT_EQ(float_bits(fold32(r.data())), float_bits(expected[0]));
}

TEST(Max, IsTheSecondUnlessTheFirstIsGreater) {
  EXPECT_EQ(max32(1, 2), 2);
  EXPECT_EQ(max32(2, 1), 2);
  EXPECT_EQ(float_bits(max32(0.0f, -0.0f)), 0x80000000u);
  EXPECT_EQ(float_bits(max32(-0.0f, 0.0f)), 0u);
  EXPECT_EQ(max32(kNaN, 1), 1);
  EXPECT_TRUE(std::isnan(max32(1, kNaN)));
}

TEST(RanksBefore, ScoreDescendingIndexAscendingNaNLast) {
  const std::vector<float> scores = {kNaN, 1, -kInfinity, 3, 1, -0.0f, 0.0f, kInfinity, kNaN, 3};
  std::vector<std::int64_t> order(scores.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
    return ranks_before(scores[static_cast<std::size_t>(a)], a, scores[static_cast<std::size_t>(b)], b);
  });
  EXPECT_EQ(order, (std::vector<std::int64_t>{7, 3, 9, 1, 4, 5, 6, 2, 0, 8}));
}

}  // namespace
}  // namespace eider::numerics
