// Every format's decode and unpack against tests/data/format, which scripts/make_format_vectors.py makes with
// the gguf package; and the encoders of tests/support against decode.
#include "format/storage_format.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "format/all_formats.h"
#include "tests/support/quantize.h"

namespace eider {
namespace {

template <class T>
std::vector<T> read_vectors(Format format, const std::string& extension) {
  const std::string path = std::string(EIDER_TEST_DATA "/format/") + format_name(format) + extension;
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file.is_open()) << path;
  const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
  std::vector<T> elements(bytes.size() / sizeof(T));
  std::memcpy(elements.data(), bytes.data(), elements.size() * sizeof(T));
  return elements;
}

class FormatTest : public testing::TestWithParam<Format> {};
INSTANTIATE_TEST_SUITE_P(All, FormatTest, testing::ValuesIn(kAllFormats),
                         [](const auto& test) { return std::string(format_name(test.param)); });

// Decodes the blocks of one pair of files.
void expect_decoded(Format format, const std::string& kind, std::int64_t least_columns) {
  const auto blocks = read_vectors<std::byte>(format, kind + ".blocks");
  const auto expected = read_vectors<float>(format, kind + ".values");
  const auto columns = static_cast<std::int64_t>(expected.size());
  ASSERT_GE(columns, least_columns);
  ASSERT_EQ(static_cast<std::int64_t>(blocks.size()), format_row_bytes(format, columns));
  std::vector<float> values(expected.size());
  decode_row(format, blocks.data(), columns, values.data());
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (std::isnan(expected[i]) && std::isnan(values[i])) continue;
    ASSERT_EQ(float_bits(values[i]), float_bits(expected[i]))
        << "column " << i << ": " << values[i] << " vs " << expected[i];
  }
}

TEST_P(FormatTest, DecodesToTheBitsOfTheGgufPackage) {
  expect_decoded(GetParam(), "", 512);
}

TEST(StorageFormat, InfiniteAndNanScalesDecodeAsThePackageHasThem) {
  for (const Format format : kAllFormats) {
    // The scales of MXFP4 and NVFP4 are bytes, all of which are among the blocks above; none is NaN.
    if (format_block_elems(format) == 1 || format == Format::kMXFP4 || format == Format::kNVFP4) continue;
    SCOPED_TRACE(format_name(format));
    expect_decoded(format, ".hostile", 4 * format_block_elems(format));
  }
}

// weight = scale * code + min in exact arithmetic is the published value up to its roundings.
void expect_weight(double scaled_code, double min, float published, std::int64_t column) {
  const double tolerance = 0x1p-22 * (std::abs(scaled_code) + std::abs(min)) + 0x1p-149;
  if (std::isinf(published))  // the largest scales of MXFP4
    ASSERT_GE(std::copysign(1.0, published) * scaled_code, 0x1p128) << "column " << column;
  else
    ASSERT_NEAR(scaled_code + min, published, tolerance) << "column " << column;
}

template <class F>
void expect_weights(const Unit32& unit, const float* published) {
  if (!F::kHasMin) {
    EXPECT_EQ(unit.min, 0);
  }
  for (int i = 0; i < 32; ++i)
    expect_weight(static_cast<double>(unit.scale) * unit.code[i], unit.min, published[i], i);
}
template <class F>
void expect_weights(const Unit32Halves& unit, const float* published) {
  for (int i = 0; i < 32; ++i)
    expect_weight(static_cast<double>(unit.scale[i / 16]) * unit.code[i], 0, published[i], i);
}
template <class F>
void expect_weights(const Unit256& unit, const float* published) {
  if (!F::kHasMin) {
    EXPECT_EQ(unit.min_scale, 0);
  }
  for (int i = 0; i < 256; ++i) {
    const int sub_block = i / 16;
    expect_weight(static_cast<double>(unit.scale) * unit.sub_scale[sub_block] * unit.code[i],
                  -static_cast<double>(unit.min_scale) * unit.sub_min[sub_block], published[i], i);
  }
}

TEST_P(FormatTest, UnpacksToIntegersThatGiveTheSameWeights) {
  const auto bytes = read_vectors<std::byte>(GetParam(), ".blocks");
  const auto expected = read_vectors<float>(GetParam(), ".values");
  visit_format(GetParam(), [&]<class F>() {
    if constexpr (!is_float_rule(F::kProduct)) {
      std::vector<typename F::Block> blocks(bytes.size() / sizeof(typename F::Block));
      std::memcpy(blocks.data(), bytes.data(), bytes.size());
      const auto units = static_cast<std::int64_t>(expected.size()) / kUnitColumns<F>;
      for (std::int64_t index = 0; index < units; ++index) {
        UnitOf<F> unit;
        unpack_unit<F>(blocks.data(), index, unit);
        expect_weights<F>(unit, expected.data() + index * kUnitColumns<F>);
      }
    }
  });
}

// Root mean square of the errors of a quantised row of standard normal values, from the bits of the format.
double largest_error(Format format) {
  switch (format) {
    case Format::kF32:
      return 0;
    case Format::kF16:
      return 0x1p-11;
    case Format::kBF16:
      return 0x1p-8;
    case Format::kFP8_E4M3:
      return 0x1p-4;
    case Format::kQ8_0:
      return 0.01;
    case Format::kQ6_K:
      return 0.025;
    case Format::kQ5_0:
    case Format::kQ5_1:
    case Format::kQ5_K:
      return 0.05;
    case Format::kQ3_K:
    case Format::kIQ3_S:
    case Format::kIQ3_XXS:
      return 0.25;
    case Format::kQ2_K:
    case Format::kIQ2_XXS:
    case Format::kIQ2_XS:
    case Format::kIQ2_S:
      return 0.4;
    case Format::kIQ1_S:
    case Format::kIQ1_M:
    case Format::kTQ1_0:
    case Format::kTQ2_0:
    case Format::kQ1_0:
      return 0.6;
    default:
      return 0.12;
  }
}

TEST_P(FormatTest, QuantisedRowsComeBackWithAnErrorOfTheirBits) {
  std::mt19937 random(5);
  std::normal_distribution<float> normal;
  std::vector<float> row(1024);
  for (float& value : row) value = normal(random);
  const auto bytes = quantize_row(GetParam(), row);
  ASSERT_EQ(static_cast<std::int64_t>(bytes.size()), format_row_bytes(GetParam(), 1024));
  std::vector<float> decoded(row.size());
  decode_row(GetParam(), bytes.data(), 1024, decoded.data());
  double squares = 0;
  for (std::size_t i = 0; i < row.size(); ++i) {
    const double error = static_cast<double>(decoded[i]) - row[i];
    squares += error * error;
  }
  EXPECT_LE(std::sqrt(squares / 1024), largest_error(GetParam()));
}

TEST_P(FormatTest, QuantisesZeros) {
  const auto bytes = quantize_row(GetParam(), std::vector<float>(256, 0.0f));
  std::vector<float> decoded(256, 1.0f);
  decode_row(GetParam(), bytes.data(), 256, decoded.data());
  for (const float value : decoded) EXPECT_EQ(value, 0);
}

TEST(StorageFormat, NamesAndSizes) {
  EXPECT_STREQ(format_name(Format::kQ4_K), "Q4_K");
  EXPECT_EQ(format_block_elems(Format::kQ6_K), 256);
  EXPECT_EQ(format_block_bytes(Format::kQ6_K), 210);
  EXPECT_EQ(format_row_bytes(Format::kQ8_0, 64), 68);
  EXPECT_EQ(format_row_bytes(Format::kBF16, 3), 6);
  EXPECT_EQ(format_row_bytes(Format::kNVFP4, 128), 72);
  EXPECT_EQ(format_row_bytes(Format::kQ1_0, 256), 36);
}

}  // namespace
}  // namespace eider
