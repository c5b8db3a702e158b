// Norms, rotation and elementwise operations: by the letter, and against long double.
#include <gtest/gtest.h>

#include "ops/rope.h"
#include "tests/support/literal_numerics.h"
#include "tests/support/plan_run.h"
#include "tests/support/random_floats.h"

namespace eider::test {
namespace {

/// The bits of `out`, which all builds of the kernels must agree on.
std::vector<std::uint32_t> run_for(TestPlan& test, ValueId out, std::int64_t rows) {
  const Plan plan = test.finish(out);
  const ValueBits values = run_plan(plan, places_in_order(rows), {.threads = 3});
  for (const std::string& backend : other_backends())
    EXPECT_TRUE(same_values(plan, values, run_plan(plan, places_in_order(rows), {.backend = backend})))
        << backend;
  return values[static_cast<std::size_t>(out.index)];
}

TEST(RmsNorm, FollowsTheLetter) {
  for (std::int64_t width : {1, 5, 32, 96, 1023, 1024, 1025, 5000})
    for (std::int64_t groups : {1, 3}) {
      constexpr std::int64_t kRows = 24;
      RandomFloats random(static_cast<std::uint64_t>(width));
      const std::vector<float> x = random.salted(kRows * groups, width);
      const std::vector<float> weight = random.normal(width);
      TestPlan test;
      const ValueId out =
          test.recorder.rms_norm(test.input(x, width * groups), test.vector(weight), 1e-5f, groups);
      std::vector<float> expected;
      for (std::int64_t vector = 0; vector < kRows * groups; ++vector)
        std::ranges::copy(literal::rms_norm(std::span(x).subspan(static_cast<std::size_t>(vector * width),
                                                                 static_cast<std::size_t>(width)),
                                            weight, 1e-5f),
                          std::back_inserter(expected));
      EXPECT_TRUE(same_bits(expected, run_for(test, out, kRows))) << width << " x " << groups;
    }
}

TEST(RmsNorm, IsCloseToTheExactNorm) {
  constexpr std::int64_t kWidth = 3000;
  RandomFloats random(3);
  const std::vector<float> x = random.normal(kWidth), weight = random.normal(kWidth);
  TestPlan test;
  const ValueId out = test.recorder.rms_norm(test.input(x, kWidth), test.vector(weight), 1e-6f);
  const std::vector<float> y = floats_of(run_for(test, out, 1));
  long double squares = 0;
  for (float value : x) squares += static_cast<long double>(value) * value;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const long double exact = x[i] / std::sqrt(squares / kWidth + 1e-6L) * weight[i];
    EXPECT_NEAR(y[i], static_cast<double>(exact), 1e-6 * std::abs(static_cast<double>(exact)));
  }
}

TEST(RmsNorm, ReadsHalfWeights) {
  const std::vector<float> x = {3, 4}, weight = {0.5f, 1.5f};
  for (Format format : {Format::kF16, Format::kBF16}) {
    TestPlan test;
    const ValueId out = test.recorder.rms_norm(test.input(x, 2), test.vector(weight, format), 0);
    EXPECT_TRUE(same_bits(literal::rms_norm(x, weight, 0), run_for(test, out, 1)));
  }
}

TEST(Rope, RotatesTheFirstDimensionsOfEachHead) {
  constexpr std::int64_t kHeads = 3, kHeadDim = 20, kRotary = 16, kRows = 40;
  RandomFloats random(5);
  const std::vector<float> x = random.normal(kRows * kHeads * kHeadDim);
  const RopeFrequencies frequencies = rope_default(kRotary, 10000);
  TestPlan test;
  const ValueId table = test.recorder.rope_table(frequencies);
  const ValueId out = test.recorder.rope(test.input(x, kHeads * kHeadDim), table, kHeads);
  const Plan plan = test.finish(out);
  RowPlaces places = places_in_order(kRows);
  for (std::int32_t& position : places.positions) position = 7 * position + 100;
  const ValueBits values = run_plan(plan, places, {.threads = 3});
  const std::vector<float> tables = floats_of(values[static_cast<std::size_t>(table.index)]);
  const std::vector<float> y = floats_of(values[static_cast<std::size_t>(out.index)]);

  for (std::size_t row = 0; row < kRows; ++row) {
    for (std::size_t i = 0; i < kRotary / 2; ++i) {
      const long double angle = places.positions[row] * static_cast<long double>(frequencies.inv_freq[i]);
      EXPECT_NEAR(tables[row * kRotary + i], static_cast<double>(std::cos(angle)), 0x1p-24);
      EXPECT_NEAR(tables[row * kRotary + kRotary / 2 + i], static_cast<double>(std::sin(angle)), 0x1p-24);
    }
    for (std::size_t head = 0; head < kHeads; ++head)
      for (std::size_t i = 0; i < kHeadDim; ++i) {
        const std::size_t at = (row * kHeads + head) * kHeadDim;
        float expected = x[at + i];
        if (i < kRotary) {
          const std::size_t pair = i % (kRotary / 2);
          const float c = tables[row * kRotary + pair], s = tables[row * kRotary + kRotary / 2 + pair];
          const float x0 = x[at + pair], x1 = x[at + kRotary / 2 + pair];
          expected = i < kRotary / 2 ? std::fma(x0, c, -(x1 * s)) : std::fma(x0, s, x1 * c);
        }
        ASSERT_EQ(y[at + i], expected) << row << ", " << head << ", " << i;
      }
  }
}

TEST(Elementwise, FollowsTheLetter) {
  constexpr std::int64_t kRows = 30, kWidth = 77;
  RandomFloats random(6);
  const std::vector<float> a = random.salted(kRows, kWidth), b = random.salted(kRows, kWidth);
  const auto check = [&](auto record, auto expected) {
    TestPlan test;
    const ValueId x = test.input(a, kWidth), y = test.input(b, kWidth);
    const ValueId out = record(test.recorder, x, y);
    std::vector<float> all;
    for (std::size_t i = 0; i < a.size(); ++i) all.push_back(expected(a[i], b[i]));
    EXPECT_TRUE(same_bits(all, run_for(test, out, kRows)));
  };
  check([](Recorder& r, auto x, auto y) { return r.add(x, y); }, [](float x, float y) { return x + y; });
  check([](Recorder& r, auto x, auto y) { return r.gated_activation(Activation::kSilu, x, y); },
        [](float x, float y) { return numerics::silu32(x) * y; });
  check([](Recorder& r, auto x, auto y) { return r.gated_activation(Activation::kGeluTanh, x, y); },
        [](float x, float y) { return numerics::gelu_tanh32(x) * y; });
  check([](Recorder& r, auto x, auto) { return r.soft_cap(x, 30); },
        [](float x, float) { return numerics::soft_cap32(x, 30); });
}

TEST(Embed, ScalesTheDequantisedRow) {
  constexpr std::int64_t kWidth = 64, kRows = 9;
  RandomFloats random(7);
  for (Format format : {Format::kF32, Format::kBF16, Format::kQ4_0, Format::kQ5_1}) {
    TestPlan test;
    const TensorView table = test.weight(format, random.normal(kRows * kWidth), kWidth);
    const ValueId out = test.recorder.embed(table, 8.125f);
    std::vector<float> expected(kRows * kWidth);
    for (std::int64_t row = 0; row < kRows; ++row)
      decode_row(format, table.row(row), kWidth, expected.data() + row * kWidth);
    for (float& value : expected) value *= 8.125f;
    EXPECT_TRUE(same_bits(expected, run_for(test, out, kRows)));
  }
}

TEST(SelectRows, GivesTheWantedRowsAsLogits) {
  constexpr std::int64_t kWidth = 3;
  TestPlan test;
  const Plan plan = test.finish(test.input({0, 1, 2, 10, 11, 12, 20, 21, 22, 30, 31, 32}, kWidth));
  ThreadPool pool(2);
  const auto backend = make_reference_backend(pool, detect_machine());
  auto executable = backend->compile(plan, {4, 2, KvType::kF16});
  ASSERT_TRUE(executable.ok());
  const std::vector<TokenId> ids = {3, 1, 0, 2};
  const std::vector<std::int32_t> positions = {0, 1, 2, 3}, sequence(4), wanted = {0, 3};
  const SequenceBlocks no_blocks;
  (*executable)->run({ids, positions, sequence, std::span(&no_blocks, 1), wanted});
  const std::span<const float> logits = (*executable)->logits();
  EXPECT_EQ(std::vector(logits.begin(), logits.end()), (std::vector<float>{30, 31, 32, 20, 21, 22}));
  (*executable)->run({ids, positions, sequence, std::span(&no_blocks, 1), {}});
  EXPECT_TRUE((*executable)->logits().empty());
}

}  // namespace
}  // namespace eider::test
