// Mixture of experts: the router and the experts' sum, by the letter and against double.
#include <gtest/gtest.h>

#include "tests/support/literal_numerics.h"
#include "tests/support/plan_run.h"
#include "tests/support/random_floats.h"

namespace eider::test {
namespace {

struct Routed {
  std::vector<std::int32_t> experts;
  std::vector<float> weights;
};
Routed route(const std::vector<float>& scores, std::int64_t experts, std::int64_t top_k, bool normalize) {
  TestPlan test;
  const auto [picks, weights] = test.recorder.moe_route(test.input(scores, experts), top_k, normalize);
  const Plan plan = test.finish(weights);
  const ValueBits values =
      run_plan(plan, places_in_order(static_cast<std::int64_t>(scores.size()) / experts), {.threads = 3});
  const auto& bits = values[static_cast<std::size_t>(picks.index)];
  return {std::vector<std::int32_t>(bits.begin(), bits.end()),
          floats_of(values[static_cast<std::size_t>(weights.index)])};
}

TEST(MoeRoute, FollowsTheLetter) {
  for (bool normalize : {true, false})
    for (auto [experts, top_k] : {std::pair{16, 4}, {128, 8}, {8, 8}, {5, 1}, {1100, 3}}) {
      constexpr std::int64_t kTokens = 40;
      RandomFloats random(static_cast<std::uint64_t>(experts));
      const std::vector<float> scores = random.salted(kTokens, experts);
      const Routed routed = route(scores, experts, top_k, normalize);
      std::vector<std::int32_t> picks;
      std::vector<float> weights;
      for (std::int64_t token = 0; token < kTokens; ++token)
        for (const literal::Pick& pick :
             literal::route(std::span(scores).subspan(static_cast<std::size_t>(token * experts),
                                                      static_cast<std::size_t>(experts)),
                            static_cast<std::size_t>(top_k), normalize)) {
          picks.push_back(pick.expert);
          weights.push_back(pick.weight);
        }
      EXPECT_EQ(routed.experts, picks);
      std::vector<std::uint32_t> bits(weights.size());
      std::memcpy(bits.data(), routed.weights.data(), 4 * weights.size());
      EXPECT_TRUE(same_bits(weights, bits));
    }
}

TEST(MoeRoute, TiesGoToTheLowerIndexAndNanComesLast) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(route({1, 2, 2, 2, 0}, 5, 2, true).experts, (std::vector<std::int32_t>{1, 2}));
  EXPECT_EQ(route({nan, -5, nan, -6, -7}, 5, 3, true).experts, (std::vector<std::int32_t>{1, 3, 4}));
  EXPECT_EQ(route({nan, -5, nan, -6, nan}, 5, 3, true).experts, (std::vector<std::int32_t>{0, 1, 3}));
}

TEST(MoeRoute, WeightsAreASoftmax) {
  const std::vector<float> scores = {0.3f, -1, 2, 1.5f};
  const Routed over_picks = route(scores, 4, 2, true), over_all = route(scores, 4, 2, false);
  const double picks = std::exp(2.0) + std::exp(1.5), all = picks + std::exp(0.3f) + std::exp(-1.0);
  EXPECT_NEAR(over_picks.weights[0], std::exp(2.0) / picks, 1e-6);
  EXPECT_NEAR(over_picks.weights[1], std::exp(1.5) / picks, 1e-6);
  EXPECT_NEAR(over_all.weights[0], std::exp(2.0) / all, 1e-6);
  EXPECT_NEAR(over_all.weights[1], std::exp(1.5) / all, 1e-6);
}

struct FfnCase {
  Format gate, up, down;
  std::int64_t hidden, intermediate, experts, top_k, tokens;
  bool salted = false;
  BlockScales blocks = {};  // of FP8 weights
};
std::ostream& operator<<(std::ostream& out, const FfnCase& c) {
  return out << format_name(c.gate) << ", " << format_name(c.up) << ", " << format_name(c.down) << "; hidden "
             << c.hidden << ", intermediate " << c.intermediate << ", " << c.top_k << " of " << c.experts
             << ", " << c.tokens << " tokens";
}

class MoeFfnTest : public testing::TestWithParam<FfnCase> {
 protected:
  MoeFfnTest() {
    const FfnCase& c = GetParam();
    RandomFloats random(static_cast<std::uint64_t>(c.intermediate + c.tokens));
    x_ = c.salted ? random.salted(c.tokens, c.hidden) : random.normal(c.tokens * c.hidden);
    scores_ = random.normal(c.tokens * c.experts, 2);
    for (std::int64_t expert = 0; expert < c.experts; ++expert) {
      const auto weight = [&](Format format, std::int64_t rows, std::int64_t columns) {
        const bool is_fp8 = format == Format::kFP8_E4M3;
        TensorView tensor = test_.weight(format, random.normal(rows * columns, is_fp8 ? 30 : 0.1f), columns);
        if (is_fp8) tensor.scales = test_.scales(c.blocks, random.normal(37, 0.003f), rows, columns);
        return tensor;
      };
      experts_.push_back({weight(c.gate, c.intermediate, c.hidden), weight(c.up, c.intermediate, c.hidden),
                          weight(c.down, c.hidden, c.intermediate)});
    }
  }

  std::vector<std::uint32_t> run(const RunManner& manner) {
    const FfnCase& c = GetParam();
    TestPlan test;
    const auto route = test.recorder.moe_route(test.input(scores_, c.experts), c.top_k, true);
    std::vector<MoeFfnOp::Expert> all;
    for (const auto& expert : experts_) all.push_back({expert.gate, expert.up, expert.down});
    const ValueId out = test.recorder.moe_ffn(test.input(x_, c.hidden), route, Activation::kSilu, all);
    const Plan plan = test.finish(out);
    return run_plan(plan, places_in_order(c.tokens), manner)[static_cast<std::size_t>(out.index)];
  }
  std::span<const float> row(const std::vector<float>& values, std::int64_t token, std::int64_t width) const {
    return std::span(values).subspan(static_cast<std::size_t>(token * width),
                                     static_cast<std::size_t>(width));
  }
  std::vector<literal::Pick> picks(std::int64_t token) const {
    return literal::route(row(scores_, token, GetParam().experts), static_cast<std::size_t>(GetParam().top_k),
                          true);
  }

  TestPlan test_;  // owns the weights
  std::vector<float> x_, scores_;
  std::vector<literal::ExpertWeights> experts_;
};

TEST_P(MoeFfnTest, FollowsTheLetter) {
  const FfnCase& c = GetParam();
  std::vector<float> expected;
  for (std::int64_t token = 0; token < c.tokens; ++token)
    std::ranges::copy(literal::moe_ffn(row(x_, token, c.hidden), picks(token), experts_, numerics::silu32),
                      std::back_inserter(expected));
  EXPECT_TRUE(same_bits(expected, run({})));
}

/// Cases in which nothing is quantised.
class FloatMoeFfnTest : public MoeFfnTest {};

TEST_P(FloatMoeFfnTest, IsCloseToTheExactSum) {
  const FfnCase& c = GetParam();
  const std::vector<float> y = floats_of(run({}));
  const auto dot = [](const TensorView& weight, std::int64_t row, const auto& x) {
    const auto* w = reinterpret_cast<const float*>(weight.row(row));
    double sum = 0;
    for (std::size_t i = 0; i < x.size(); ++i) sum += static_cast<double>(w[i]) * x[i];
    return sum;
  };
  for (std::int64_t token = 0; token < c.tokens; ++token) {
    std::vector<double> exact(static_cast<std::size_t>(c.hidden));
    for (const literal::Pick& pick : picks(token)) {
      const auto& expert = experts_[static_cast<std::size_t>(pick.expert)];
      std::vector<double> h;
      for (std::int64_t i = 0; i < c.intermediate; ++i) {
        const double gate = dot(expert.gate, i, row(x_, token, c.hidden));
        h.push_back(gate / (1 + std::exp(-gate)) * dot(expert.up, i, row(x_, token, c.hidden)));
      }
      for (std::size_t i = 0; i < exact.size(); ++i)
        exact[i] += pick.weight * dot(expert.down, static_cast<std::int64_t>(i), h);
    }
    for (std::size_t i = 0; i < exact.size(); ++i)
      ASSERT_NEAR(y[static_cast<std::size_t>(token * c.hidden) + i], exact[i], 2e-5);
  }
}

TEST_P(MoeFfnTest, DoesNotDependOnStepsOrThreads) {
  const std::int64_t tokens = GetParam().tokens;
  const std::vector<std::uint32_t> whole = run({});
  const auto same = [&](const RunManner& manner) {
    return same_bits(std::span<const std::uint32_t>(whole), std::span<const std::uint32_t>(run(manner)));
  };
  EXPECT_TRUE(same({.threads = 16}));
  EXPECT_TRUE(same({.threads = 3, .steps = std::vector<std::int64_t>(static_cast<std::size_t>(tokens), 1)}));
  const FfnCase& c = GetParam();
  const bool fp8 = std::ranges::count(std::array{c.gate, c.up, c.down}, Format::kFP8_E4M3) > 0;
  for (const std::string& backend : other_backends(fp8))
    EXPECT_TRUE(same({.threads = 1, .backend = backend, .steps = {tokens / 2, tokens - tokens / 2}}))
        << backend;
}

const std::vector<FfnCase> kFloatCases = {
    {Format::kF32, Format::kF32, Format::kF32, 40, 100, 16, 4, 70},
    {Format::kF32, Format::kF32, Format::kF32, 32, 1100, 4, 2, 3}};  // groups of two units
INSTANTIATE_TEST_SUITE_P(Float, MoeFfnTest, testing::ValuesIn(kFloatCases));
INSTANTIATE_TEST_SUITE_P(Float, FloatMoeFfnTest, testing::ValuesIn(kFloatCases));
INSTANTIATE_TEST_SUITE_P(
    Quantised, MoeFfnTest,
    testing::Values(FfnCase{Format::kBF16, Format::kF16, Format::kF16, 48, 1056, 3, 3, 5},
                    FfnCase{Format::kQ4_0, Format::kQ8_0, Format::kQ5_1, 64, 96, 8, 2, 40},
                    FfnCase{Format::kQ8_0, Format::kQ8_0, Format::kQ8_0, 32, 1056, 4, 2, 6},
                    FfnCase{Format::kQ4_K, Format::kQ5_K, Format::kQ6_K, 256, 1280, 4, 2, 6},
                    FfnCase{Format::kQ4_K, Format::kQ8_0, Format::kQ4_0, 256, 64, 4, 2, 9},
                    FfnCase{Format::kIQ4_XS, Format::kQ2_K, Format::kIQ4_NL, 256, 1056, 4, 2, 6},
                    FfnCase{Format::kMXFP4, Format::kMXFP4, Format::kMXFP4, 64, 1120, 4, 2, 40},
                    FfnCase{Format::kIQ2_XS, Format::kIQ3_XXS, Format::kNVFP4, 256, 1088, 4, 2, 40},
                    FfnCase{Format::kQ1_0, Format::kIQ1_M, Format::kQ3_K, 256, 256, 4, 2, 33},
                    FfnCase{Format::kQ8_0, Format::kQ8_0, Format::kF16, 64, 64, 8, 3, 40, true}));
constexpr Format kFp8 = Format::kFP8_E4M3;
INSTANTIATE_TEST_SUITE_P(
    Fp8, MoeFfnTest,
    testing::Values(FfnCase{kFp8, kFp8, kFp8, 96, 224, 8, 3, 40, true, {nullptr, 128, 128, 1, 0}},
                    FfnCase{kFp8, kFp8, kFp8, 192, 1184, 4, 2, 6, false, {nullptr, 128, 128, 1, 0}},
                    FfnCase{kFp8, kFp8, kFp8, 64, 1100, 4, 2, 20, false, {nullptr, 128, 128, 1, 50}},
                    FfnCase{kFp8, kFp8, kFp8, 64, 1056, 4, 2, 9, false, {nullptr, 1, 0, 1, 0}},
                    FfnCase{kFp8, kFp8, kFp8, 96, 768, 4, 3, 1, false, {nullptr, 128, 64, 1, 0}},
                    FfnCase{kFp8, kFp8, kFp8, 96, 1312, 4, 3, 1, false, {nullptr, 128, 32, 1, 0}},
                    FfnCase{kFp8, Format::kBF16, kFp8, 64, 96, 4, 2, 1, false, {nullptr, 4096, 0, 1, 0}},
                    FfnCase{Format::kF32, kFp8, Format::kQ8_0, 64, 96, 4, 2, 40, false, {}}));

TEST(MoeFfn, RefusesExpertsOfDifferentFormats) {
  TestPlan test;
  const std::vector<float> values(32 * 32, 1.0f);
  const TensorView f32 = test.weight(Format::kF32, values, 32), q8 = test.weight(Format::kQ8_0, values, 32);
  const auto route = test.recorder.moe_route(test.input({1, 2}, 2), 1, true);
  const ValueId out = test.recorder.moe_ffn(test.input(std::vector<float>(32), 32), route, Activation::kSilu,
                                            {{f32, f32, f32}, {f32, f32, q8}});
  const Plan plan = test.finish(out);
  ThreadPool pool(1);
  const auto executable = make_reference_backend(pool, detect_machine())->compile(plan, {});
  ASSERT_FALSE(executable.ok());
  EXPECT_NE(executable.error().message().find("moe_ffn"), std::string::npos);
}

}  // namespace
}  // namespace eider::test
