#include "weights/gguf.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "format/all_formats.h"
#include "tests/support/gguf_writer.h"
#include "weights/gguf_tensor_type.h"

namespace eider {
namespace {

using test::bytes_of;
using test::GgufWriter;

/// A parsed file and the bytes it points into.
struct Parsed {
  std::string bytes;
  Result<GgufFile> file;

  explicit Parsed(const GgufWriter& writer)
      : bytes(writer.bytes()), file(GgufFile::parse(std::as_bytes(std::span(bytes)))) {}
};

TEST(Gguf, ReadsEveryMetadataType) {
  GgufWriter writer;
  writer.metadata("u8", std::uint8_t{200}).metadata("i8", std::int8_t{-100});
  writer.metadata("u16", std::uint16_t{60000}).metadata("i16", std::int16_t{-30000});
  writer.metadata("u32", std::uint32_t{4000000000}).metadata("i32", std::int32_t{-2000000000});
  writer.metadata("u64", std::uint64_t{1} << 62).metadata("i64", std::numeric_limits<std::int64_t>::min());
  writer.metadata("f32", 0.1f).metadata("f64", 0.1);
  writer.metadata("true", true).metadata("false", false);
  writer.metadata("text", "grüße").metadata("empty", "");
  const Parsed parsed(writer);
  ASSERT_TRUE(parsed.file) << parsed.file.error().message();
  const GgufFile& file = *parsed.file;

  EXPECT_EQ(file.version(), 3u);
  EXPECT_EQ(**file.integer("u8"), 200);
  EXPECT_EQ(**file.integer("i8"), -100);
  EXPECT_EQ(**file.integer("u16"), 60000);
  EXPECT_EQ(**file.integer("i16"), -30000);
  EXPECT_EQ(**file.integer("u32"), 4000000000);
  EXPECT_EQ(**file.integer("i32"), -2000000000);
  EXPECT_EQ(**file.integer("u64"), std::int64_t{1} << 62);
  EXPECT_EQ(**file.integer("i64"), std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(**file.number("f32"), static_cast<double>(0.1f));
  EXPECT_EQ(**file.number("f64"), 0.1);
  EXPECT_EQ(**file.number("u16"), 60000.0);
  EXPECT_TRUE(**file.boolean("true"));
  EXPECT_FALSE(**file.boolean("false"));
  EXPECT_EQ(**file.string("text"), "grüße");
  EXPECT_EQ(**file.string("empty"), "");
  EXPECT_FALSE(*file.integer("absent"));
}

TEST(Gguf, ReadsArrays) {
  GgufWriter writer;
  writer.metadata("texts", std::vector<std::string>{"a", "", "ccc"});
  writer.metadata("i32", std::vector<std::int32_t>{-1, 0, 7});
  writer.metadata("f32", std::vector<float>{0.5f, -2});
  writer.metadata("bools", std::vector<bool>{true, false, true});
  writer.metadata("none", std::vector<std::uint32_t>{});
  const Parsed parsed(writer);
  ASSERT_TRUE(parsed.file) << parsed.file.error().message();

  EXPECT_EQ(*parsed.file->find("texts")->strings(), (std::vector<std::string_view>{"a", "", "ccc"}));
  EXPECT_EQ(*parsed.file->find("i32")->integers(), (std::vector<std::int64_t>{-1, 0, 7}));
  EXPECT_EQ(*parsed.file->find("f32")->numbers(), (std::vector<double>{0.5, -2}));
  EXPECT_EQ(*parsed.file->find("bools")->integers(), (std::vector<std::int64_t>{1, 0, 1}));
  EXPECT_TRUE(parsed.file->find("none")->integers()->empty());
  EXPECT_EQ(parsed.file->find("texts")->description(), "an array of 3 x string");
}

TEST(Gguf, ValuesOfAnotherKindAreErrorsThatNameTheKey) {
  GgufWriter writer;
  writer.metadata("text", "x").metadata("number", 1.5f).metadata("big", std::uint64_t{1} << 63);
  writer.metadata("array", std::vector<std::int32_t>{1});
  const Parsed parsed(writer);
  ASSERT_TRUE(parsed.file) << parsed.file.error().message();
  const GgufFile& file = *parsed.file;

  EXPECT_EQ(file.integer("text").error().message(),
            "metadata key text: expected an integer below 2^63, found a string");
  EXPECT_EQ(file.integer("number").error().message(),
            "metadata key number: expected an integer below 2^63, found a f32");
  EXPECT_EQ(file.integer("big").error().message(),
            "metadata key big: expected an integer below 2^63, found a u64");
  EXPECT_EQ(file.number("text").error().message(), "metadata key text: expected a number, found a string");
  EXPECT_EQ(file.boolean("number").error().message(),
            "metadata key number: expected true or false, found a f32");
  EXPECT_EQ(file.string("array").error().message(),
            "metadata key array: expected a string, found an array of 1 x i32");
  EXPECT_FALSE(file.find("array")->strings());
  EXPECT_FALSE(file.find("text")->integers());
}

TEST(Gguf, TensorsHavePyTorchShapesAndTheirBytes) {
  const std::vector<float> matrix = {1, 2, 3, 4, 5, 6};
  GgufWriter writer;
  writer.tensor("matrix", {2, 3}, matrix);
  writer.tensor("q4_0", {3, 2, 64}, Format::kQ4_0, std::string(3 * 2 * 2 * 18, '\x11'));
  writer.tensor("vector", {4}, Format::kBF16, std::string(8, '\x22'));
  writer.tensor("scalar", {}, Format::kF32, std::string(4, '\x33'));
  const Parsed parsed(writer);
  ASSERT_TRUE(parsed.file) << parsed.file.error().message();
  const std::vector<TensorView>& tensors = parsed.file->tensors();

  ASSERT_EQ(tensors.size(), 4u);
  EXPECT_EQ(tensors[0].name, "matrix");
  EXPECT_EQ(tensors[0].shape, (Shape{2, 3}));
  EXPECT_EQ(std::memcmp(tensors[0].data, matrix.data(), 24), 0);
  EXPECT_EQ(tensors[1].format, Format::kQ4_0);
  EXPECT_EQ(tensors[1].shape, (Shape{3, 2, 64}));
  EXPECT_EQ(tensors[1].bytes(), 3 * 2 * 2 * 18);
  EXPECT_EQ(std::to_integer<int>(tensors[1].data[107 * 2 + 1]), 0x11);
  EXPECT_EQ(tensors[2].shape, (Shape{4}));
  EXPECT_EQ(std::to_integer<int>(tensors[2].data[7]), 0x22);
  EXPECT_EQ(tensors[3].shape, Shape());
  EXPECT_EQ(tensors[3].bytes(), 4);
}

TEST(Gguf, GivesDataOutAsItIs) {
  const std::vector<std::int32_t> indices = {5, -1, 7, 0, 1 << 30, 3};
  GgufWriter writer;
  writer.tensor({"i8", {3}, 24, "abc", {}}).tensor({"i16", {1}, 25, "ab", {}});
  writer.tensor({"i32", {2, 3}, 26, bytes_of(indices), {}});
  writer.tensor("weight", {1}, {1.0f});
  writer.tensor({"i64", {1}, 27, "abcdefgh", {}});
  writer.tensor({"f64", {2}, 28, bytes_of(std::vector<double>{0.1, -2}), {}});
  const Parsed parsed(writer);
  ASSERT_TRUE(parsed.file) << parsed.file.error().message();
  ASSERT_EQ(parsed.file->tensors().size(), 1u);
  EXPECT_EQ(parsed.file->tensors()[0].name, "weight");

  const std::vector<DataTensor>& data = parsed.file->data_tensors();
  ASSERT_EQ(data.size(), 5u);
  const char* const dtypes[] = {"I8", "I16", "I32", "I64", "F64"};
  const std::size_t sizes[] = {3, 2, 24, 8, 16};
  for (std::size_t i = 0; i < data.size(); ++i) {
    EXPECT_EQ(data[i].dtype, dtypes[i]);
    EXPECT_EQ(data[i].bytes.size(), sizes[i]);
  }
  EXPECT_EQ(data[2].name, "i32");
  EXPECT_EQ(data[2].shape, (Shape{2, 3}));
  EXPECT_EQ(std::memcmp(data[2].bytes.data(), indices.data(), 24), 0);
}

TEST(Gguf, HonoursTheAlignment) {
  GgufWriter writer;
  writer.alignment = 256;
  writer.metadata("general.alignment", std::uint32_t{256});
  writer.tensor("a", {1}, {1.5f}).tensor("b", {1}, {2.5f});
  const Parsed parsed(writer);
  ASSERT_TRUE(parsed.file) << parsed.file.error().message();
  EXPECT_EQ(parsed.file->tensors()[1].data - parsed.file->tensors()[0].data, 256);
  float value = 0;
  std::memcpy(&value, parsed.file->tensors()[1].data, sizeof value);
  EXPECT_EQ(value, 2.5f);
}

TEST(Gguf, ReadsVersion2) {
  GgufWriter writer;
  writer.version = 2;
  writer.tensor("a", {1}, {1.0f});
  const Parsed parsed(writer);
  ASSERT_TRUE(parsed.file) << parsed.file.error().message();
  EXPECT_EQ(parsed.file->version(), 2u);
}

TEST(Gguf, TensorTypesHaveTheNumbersOfTheFormat) {
  for (const Format format : kAllFormats) {
    if (format == Format::kFP8_E4M3) continue;  // not of GGUF
    EXPECT_EQ(*gguf_tensor_format(test::ggml_type(format)), format);
    EXPECT_EQ(gguf_tensor_type(format), test::ggml_type(format));
  }
  EXPECT_EQ(
      gguf_tensor_format(42).error().message(),
      "type Q2_0 (number 42) is not supported; supported are F32, F16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q2_K, "
      "Q3_K, Q4_K, Q5_K, Q6_K, IQ2_XXS, IQ2_XS, IQ3_XXS, IQ1_S, IQ4_NL, IQ3_S, IQ2_S, IQ4_XS, IQ1_M, BF16, "
      "TQ1_0, TQ2_0, MXFP4, NVFP4, Q1_0");
  EXPECT_EQ(gguf_tensor_format(139).error().message().substr(0, 71),
            "type number 139 is unknown (removed from GGUF, or of a fork); supported");
}

}  // namespace
}  // namespace eider
