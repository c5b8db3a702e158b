// Rotary frequencies and tables against transformers (tests/data/golden/ops, tolerances as its README says)
// and against the formulas in long double.
#include "ops/rope.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "weights/safetensors.h"

namespace eider {
namespace {

class RopeGoldens : public testing::Test {
 protected:
  void SetUp() override {
    auto file = SafetensorsFile::open(EIDER_TEST_DATA "/golden/ops/ops.safetensors");
    ASSERT_TRUE(file.ok()) << file.error().message();
    file_ = std::make_unique<SafetensorsFile>(std::move(file).value());
  }

  template <class T>
  std::vector<T> tensor(const std::string& name) const {
    const auto* entry = file_->find(name);
    EXPECT_NE(entry, nullptr) << name;
    if (entry == nullptr) return {};
    std::vector<T> values(entry->bytes.size() / sizeof(T));
    std::memcpy(values.data(), entry->bytes.data(), values.size() * sizeof(T));
    return values;
  }

  // Frequencies, magnitude, and cos and sin at every position of the goldens.
  void expect_case(const std::string& name, const RopeFrequencies& rope) const {
    SCOPED_TRACE(name);
    const auto inv_freq = tensor<float>("rope." + name + ".inv_freq");
    const auto cos = tensor<float>("rope." + name + ".cos");
    const auto sin = tensor<float>("rope." + name + ".sin");
    const auto positions = tensor<std::int64_t>("rope.positions");
    const std::size_t pairs = inv_freq.size();
    ASSERT_EQ(rope.inv_freq.size(), pairs);
    ASSERT_EQ(cos.size(), positions.size() * pairs);
    EXPECT_NEAR(rope.magnitude, tensor<float>("rope." + name + ".attention_factor").at(0), 1e-6);
    for (std::size_t i = 0; i < pairs; ++i)
      EXPECT_NEAR(rope.inv_freq[i], inv_freq[i], 1e-5 * inv_freq[i]) << i;
    std::vector<float> row(2 * pairs);
    for (std::size_t p = 0; p < positions.size(); ++p) {
      fill_rope_row(rope.inv_freq, rope.magnitude, positions[p], row.data());
      // float32 angles lose digits as positions grow.
      const double tolerance = positions[p] <= 63 ? 1e-5 : positions[p] <= 4095 ? 1e-3 : 1e-2;
      for (std::size_t i = 0; i < pairs; ++i) {
        EXPECT_NEAR(row[i], cos[p * pairs + i], tolerance) << "position " << positions[p] << " pair " << i;
        EXPECT_NEAR(row[pairs + i], sin[p * pairs + i], tolerance)
            << "position " << positions[p] << " pair " << i;
      }
    }
  }

 private:
  std::unique_ptr<SafetensorsFile> file_;
};

TEST_F(RopeGoldens, Default) {
  expect_case("default", rope_default(32, 10000));
}

TEST_F(RopeGoldens, Linear) {
  expect_case("linear", rope_linear(64, 1e6, 8));
}

TEST_F(RopeGoldens, Llama3) {
  expect_case("llama3", rope_divided(128, 500000, llama3_divisors(128, 500000, 8, 1, 4, 8192)));
}

TEST_F(RopeGoldens, Yarn) {
  YarnParameters yarn;
  yarn.factor = 4;
  yarn.original_max_position_embeddings = 32768;
  expect_case("yarn_qwen", rope_yarn(128, 1e6, yarn));

  yarn.factor = 16;
  yarn.original_max_position_embeddings = 65536;
  yarn.magnitude = 1;
  expect_case("yarn_deepseek_v4", rope_yarn(64, 160000, yarn));

  yarn.factor = 40;
  yarn.original_max_position_embeddings = 4096;
  expect_case("yarn_deepseek_v3", rope_yarn(64, 10000, yarn));
  yarn.magnitude = yarn_magnitude(40, 1) / yarn_magnitude(40, 0.707);
  expect_case("yarn_mscale", rope_yarn(64, 10000, yarn));
}

TEST(Rope, Llama3DivisorsSpanTheirBands) {
  const auto divisors = llama3_divisors(128, 500000, 8, 1, 4, 8192);
  ASSERT_EQ(divisors.size(), 64u);
  EXPECT_EQ(divisors.front(), 1);
  EXPECT_EQ(divisors.back(), 8);
  for (std::size_t i = 1; i < divisors.size(); ++i) EXPECT_LE(divisors[i - 1], divisors[i]) << i;
}

TEST(Rope, FrequenciesAreAccurateDoubles) {
  const auto rope = rope_default(128, 1e6);
  for (std::size_t i = 0; i < 64; ++i) {
    const long double exact = std::pow(1e6L, -static_cast<long double>(i) / 64);
    EXPECT_NEAR(rope.inv_freq[i] / exact, 1, 4e-15) << i;  // an ulp of the exponent, up to 13.8, is 1.8e-15
  }
}

// The last rounding is the only one that shows: rows are the float32 nearest to the exact cos and sin of the
// double angle.
TEST(Rope, RowsAreRoundedOnceAtLongPositions) {
  const auto rope = rope_default(64, 10000);
  std::vector<float> row(64);
  for (const std::int64_t position : {0, 1, 4095, 131071, (1 << 24) - 1}) {
    fill_rope_row(rope.inv_freq, 1, position, row.data());
    for (std::size_t i = 0; i < 32; ++i) {
      const double angle = static_cast<double>(position) * rope.inv_freq[i];
      EXPECT_EQ(row[i], static_cast<float>(std::cos(static_cast<long double>(angle))))
          << position << " " << i;
      EXPECT_EQ(row[32 + i], static_cast<float>(std::sin(static_cast<long double>(angle))))
          << position << " " << i;
    }
  }
}

}  // namespace
}  // namespace eider
