// Products of every format: bit for bit by the letter of docs/NUMERICS.md, and close to the exact product.
#include <gtest/gtest.h>

#include "format/all_formats.h"
#include "tests/support/literal_numerics.h"
#include "tests/support/plan_run.h"
#include "tests/support/random_floats.h"

namespace eider::test {
namespace {

struct ProductCase {
  Format format;
  std::int64_t rows, columns, tokens;
};

std::ostream& operator<<(std::ostream& out, const ProductCase& c) {
  return out << format_name(c.format) << " [" << c.rows << ", " << c.columns << "], " << c.tokens
             << " tokens";
}

std::vector<ProductCase> product_cases() {
  std::vector<ProductCase> cases;
  for (Format format : kAllFormats) {
    std::vector<std::int64_t> columns = {256, 768, 1792};
    if (format_block_elems(format) <= 32) columns.insert(columns.end(), {32, 96, 992});
    if (format_block_elems(format) == 1) columns.insert(columns.end(), {1, 31, 33, 100});
    for (std::int64_t c : columns)
      for (auto [rows, tokens] : {std::pair{1, 1}, {16, 1}, {17, 33}, {50, 7}})
        cases.push_back({format, rows, c, tokens});
  }
  return cases;
}

class ProductTest : public testing::TestWithParam<ProductCase> {};

TEST_P(ProductTest, FollowsTheLetter) {
  const auto [format, rows, columns, tokens] = GetParam();
  RandomFloats random(static_cast<std::uint64_t>(rows * 1000 + columns));
  const std::vector<float> x = random.salted(tokens, columns);
  const std::vector<float> bias = random.normal(rows);
  TestPlan test;
  const TensorView weight = test.weight(format, random.normal(rows * columns), columns);
  const auto out =
      test.recorder.linear<2>(test.input(x, columns), {{{weight, test.vector(bias)}, {weight, {}}}});
  const Plan plan = test.finish(out[0]);
  const ValueBits values = run_plan(plan, places_in_order(tokens), {});
  for (const std::string& backend : other_backends(plan))
    EXPECT_TRUE(same_values(plan, values, run_plan(plan, places_in_order(tokens), {.backend = backend})))
        << backend;

  std::vector<float> with_bias, without;
  for (std::int64_t token = 0; token < tokens; ++token) {
    const auto row =
        std::span(x).subspan(static_cast<std::size_t>(token * columns), static_cast<std::size_t>(columns));
    std::ranges::copy(literal::product(weight, row, bias), std::back_inserter(with_bias));
    std::ranges::copy(literal::product(weight, row), std::back_inserter(without));
  }
  EXPECT_TRUE(same_bits(with_bias, values[static_cast<std::size_t>(out[0].index)]));
  EXPECT_TRUE(same_bits(without, values[static_cast<std::size_t>(out[1].index)]));
}

TEST_P(ProductTest, IsCloseToTheExactProduct) {
  const auto [format, rows, columns, tokens] = GetParam();
  RandomFloats random(static_cast<std::uint64_t>(rows * 2000 + columns));
  const std::vector<float> x = random.normal(tokens * columns);
  TestPlan test;
  const TensorView weight = test.weight(format, random.normal(rows * columns), columns);
  const ValueId out = test.recorder.linear(test.input(x, columns), {weight, {}});
  const Plan plan = test.finish(out);
  const std::vector<float> y =
      floats_of(run_plan(plan, places_in_order(tokens), {})[static_cast<std::size_t>(out.index)]);

  const std::int64_t group = format_block_elems(format);  // 1: not quantised
  std::vector<float> w(static_cast<std::size_t>(columns));
  for (std::int64_t token = 0; token < tokens; ++token)
    for (std::int64_t row = 0; row < rows; ++row) {
      decode_row(format, weight.row(row), columns, w.data());
      double exact = 0, tolerance = 0;
      for (std::int64_t begin = 0; begin < columns; begin += group) {
        double largest = 0, weights = 0;
        for (std::int64_t k = begin; k < begin + group; ++k) {
          const double xk = x[static_cast<std::size_t>(token * columns + k)],
                       wk = w[static_cast<std::size_t>(k)];
          exact += wk * xk;
          tolerance += 1e-6 * std::abs(wk * xk);
          largest = std::max(largest, std::abs(xk));
          weights += std::abs(wk);
        }
        if (group > 1) tolerance += weights * largest / 127 * 0.501;  // each code is off by at most a half
      }
      ASSERT_NEAR(y[static_cast<std::size_t>(token * rows + row)], exact, tolerance) << token << ", " << row;
    }
}

INSTANTIATE_TEST_SUITE_P(Formats, ProductTest, testing::ValuesIn(product_cases()));

/// A block whose bytes are all `codes`, so that codes, sub-scales and sub-minima are as far from 0 as bits
/// allow, with scales of 1.
std::vector<std::byte> extreme_block(Format format, unsigned char codes) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(format_block_bytes(format)), std::byte{codes});
  visit_format(format, [&]<class F>() {
    const std::uint16_t one = float_to_half(1);
    typename F::Block block;
    std::memcpy(&block, bytes.data(), sizeof block);
    if constexpr (requires { block.d = one; }) block.d = one;
    if constexpr (requires { block.m = one; }) block.m = one;
    if constexpr (requires { block.dmin = one; }) block.dmin = one;
    if constexpr (requires { block.e; }) block.e = 127;
    if constexpr (requires { F::set_scale_bits(block, one); }) F::set_scale_bits(block, one);
    std::memcpy(bytes.data(), &block, sizeof block);
  });
  return bytes;
}

// Sums of codes are widest here: kernels that add them in 16 bits must not overflow.
TEST(Product, ExtremeCodes) {
  constexpr std::int64_t kColumns = 1024, kRows = 33, kTokens = 9;
  std::vector<float> x;
  for (std::int64_t token = 0; token < kTokens; ++token)
    for (std::int64_t k = 0; k < kColumns; ++k)
      x.push_back(token % 3 == 0 ? 1.0f : token % 3 == 1 ? -1.0f : k % (2 * token) < token ? 1.0f : -1.0f);
  for (Format format : kAllFormats) {
    if (format_block_elems(format) == 1) continue;  // floats
    for (unsigned char codes : {0x00, 0xff, 0x80, 0x7f, 0x0f, 0xf0}) {
      TestPlan test;
      const TensorView weight =
          test.weight(format, std::vector<float>(static_cast<std::size_t>(kRows * kColumns)), kColumns);
      const std::vector<std::byte> block = extreme_block(format, codes);
      auto* blocks = const_cast<std::byte*>(weight.data);  // the test's own
      for (std::size_t at = 0; at < static_cast<std::size_t>(kRows * weight.row_bytes()); at += block.size())
        std::ranges::copy(block, blocks + at);
      const ValueId out = test.recorder.linear(test.input(x, kColumns), {weight, {}});
      const Plan plan = test.finish(out);
      const ValueBits values = run_plan(plan, places_in_order(kTokens), {});
      std::vector<float> expected;
      for (std::int64_t token = 0; token < kTokens; ++token)
        std::ranges::copy(literal::product(weight, std::span(x).subspan(
                                                       static_cast<std::size_t>(token * kColumns), kColumns)),
                          std::back_inserter(expected));
      EXPECT_TRUE(same_bits(expected, values[static_cast<std::size_t>(out.index)])) << format_name(format);
      for (const std::string& backend : other_backends(plan))
        EXPECT_TRUE(same_values(plan, values, run_plan(plan, places_in_order(kTokens), {.backend = backend})))
            << backend << ", " << format_name(format) << ", " << int{codes};
    }
  }
}

// One operation may hold projections of all three rules; biases come in any float format.
TEST(Product, MixesFormatsInOneOperation) {
  constexpr std::int64_t kColumns = 512, kTokens = 5;
  RandomFloats random(1);
  const std::vector<float> x = random.normal(kTokens * kColumns);
  TestPlan test;
  std::vector<TensorView> weights;
  for (Format format : {Format::kQ4_K, Format::kQ8_0, Format::kF16})
    weights.push_back(test.weight(format, random.normal(40 * kColumns), kColumns));
  const std::vector<float> bias = {1, -2, 0.5f};
  std::vector<float> repeated;
  for (int i = 0; i < 40; ++i) repeated.push_back(bias[static_cast<std::size_t>(i % 3)]);
  const auto out = test.recorder.linear<3>(
      test.input(x, kColumns),
      {{{weights[0], {}}, {weights[1], test.vector(repeated, Format::kBF16)}, {weights[2], {}}}});
  const Plan plan = test.finish(out[0]);
  const ValueBits values = run_plan(plan, places_in_order(kTokens), {.threads = 3});
  for (std::size_t i = 0; i < 3; ++i) {
    std::vector<float> expected;
    for (std::int64_t token = 0; token < kTokens; ++token)
      std::ranges::copy(
          literal::product(weights[i],
                           std::span(x).subspan(static_cast<std::size_t>(token * kColumns), kColumns),
                           i == 1 ? std::span<const float>(repeated) : std::span<const float>()),
          std::back_inserter(expected));
    EXPECT_TRUE(same_bits(expected, values[static_cast<std::size_t>(out[i].index)])) << i;
  }
}

struct ScalesCase {
  BlockScales blocks;
  std::int64_t rows, columns;
};
std::ostream& operator<<(std::ostream& out, const ScalesCase& c) {
  return out << "[" << c.rows << ", " << c.columns << "] in blocks of " << c.blocks.block_rows << " x "
             << c.blocks.block_columns << " from row " << c.blocks.first_row;
}

class Fp8ScalesTest : public testing::TestWithParam<ScalesCase> {};

TEST_P(Fp8ScalesTest, FollowTheLetter) {
  const auto& [blocks, rows, columns] = GetParam();
  for (const std::int64_t tokens : {1, 3, 33}) {
    RandomFloats random(static_cast<std::uint64_t>(rows + columns + tokens));
    const std::vector<float> x = random.salted(tokens, columns);
    const std::vector<float> bias = random.normal(rows);
    TestPlan test;
    TensorView weight = test.weight(Format::kFP8_E4M3, random.normal(rows * columns, 30), columns);
    weight.scales = test.scales(blocks, random.normal(37, 0.01f), rows, columns);
    const ValueId out = test.recorder.linear(test.input(x, columns), {weight, test.vector(bias)});
    const Plan plan = test.finish(out);
    const ValueBits values = run_plan(plan, places_in_order(tokens), {});
    for (const std::string& backend : other_backends(plan))
      EXPECT_TRUE(same_values(plan, values, run_plan(plan, places_in_order(tokens), {.backend = backend})))
          << backend << ", " << tokens << " tokens";
    std::vector<float> expected;
    for (std::int64_t token = 0; token < tokens; ++token)
      std::ranges::copy(literal::product(weight,
                                         std::span(x).subspan(static_cast<std::size_t>(token * columns),
                                                              static_cast<std::size_t>(columns)),
                                         bias),
                        std::back_inserter(expected));
    EXPECT_TRUE(same_bits(expected, values[static_cast<std::size_t>(out.index)])) << tokens << " tokens";
  }
}

INSTANTIATE_TEST_SUITE_P(
    Blocks, Fp8ScalesTest,
    testing::Values(
        ScalesCase{{nullptr, 128, 128, 1, 0}, 300, 320},  // ragged last blocks
        ScalesCase{{nullptr, 128, 128, 1, 0}, 50, 100}, ScalesCase{{nullptr, 128, 128, 1, 96}, 70, 256},
        ScalesCase{{nullptr, 128, 128, 1, 100}, 70, 256},  // tiles across blocks
        ScalesCase{{nullptr, 16, 32, 1, 0}, 70, 288}, ScalesCase{{nullptr, 4096, 64, 1, 0}, 70, 288},
        ScalesCase{{nullptr, 128, 64, 1, 0}, 200, 768}, ScalesCase{{nullptr, 128, 32, 1, 0}, 200, 768},
        ScalesCase{{nullptr, 1, 0, 1, 0}, 70, 288}, ScalesCase{{nullptr, 4096, 0, 1, 0}, 70, 288}));

// The scales are those of the element, whatever the order of products.
TEST(Product, ScalesOfFp8AreThoseOfEachElementsBlock) {
  constexpr std::int64_t kRows = 200, kColumns = 320;
  TestPlan test;
  RandomFloats random(5);
  TensorView weight = test.weight(Format::kFP8_E4M3, random.normal(kRows * kColumns, 30), kColumns);
  weight.scales = test.scales({nullptr, 128, 128, 1, 0}, {1, 2, 4, 8, 16, 32}, kRows, kColumns);
  const std::vector<float> x = random.normal(kColumns);
  const ValueId out = test.recorder.linear(test.input(x, kColumns), {weight, {}});
  const Plan plan = test.finish(out);
  const std::vector<float> y =
      floats_of(run_plan(plan, places_in_order(1), {})[static_cast<std::size_t>(out.index)]);
  std::vector<float> codes(kColumns);
  for (std::int64_t row = 0; row < kRows; ++row) {
    decode_row(weight.format, weight.row(row), kColumns, codes.data());
    double exact = 0, magnitude = 0;
    for (std::int64_t column = 0; column < kColumns; ++column) {
      const double term = std::exp2(3 * (row / 128) + column / 128) *
                          codes[static_cast<std::size_t>(column)] * x[static_cast<std::size_t>(column)];
      exact += term;
      magnitude += std::abs(term);
    }
    ASSERT_NEAR(y[static_cast<std::size_t>(row)], exact, 1e-6 * magnitude) << row;
  }
}

// A product of known value: catches a literal transcription that is wrong in the same way.
TEST(Product, KnownValues) {
  TestPlan test;
  const std::vector<float> x(64, 127.0f);  // codes 127, d = 1
  const TensorView weight = test.weight(Format::kQ8_0, std::vector<float>(64, 127.0f), 64);
  const ValueId y = test.recorder.linear(test.input(x, 64), {weight, {}});
  const Plan plan = test.finish(y);
  EXPECT_EQ(floats_of(run_plan(plan, places_in_order(1), {})[static_cast<std::size_t>(y.index)])[0],
            64 * 127.0f * 127.0f);
}

}  // namespace
}  // namespace eider::test
