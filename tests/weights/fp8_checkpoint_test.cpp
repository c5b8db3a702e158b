// FP8 checkpoints: every published form of scales, and what is wrong with those that are refused.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "tensor/code_check.h"
#include "tests/support/gguf_writer.h"
#include "tests/support/safetensors_writer.h"
#include "weights/checkpoint.h"

namespace eider {
namespace {

using test::bytes_of;
using test::SafetensorsWriter;
using test::TempDir;

constexpr const char* kQwen = R"({"model_type": "qwen3"})";

/// Elements of `code`: 0x38 is 1.
std::string codes(std::int64_t count, char code = 0x38) {
  return std::string(static_cast<std::size_t>(count), code);
}

/// A checkpoint of one file.
std::shared_ptr<const Checkpoint> open(const SafetensorsWriter& writer, const TempDir& directory,
                                       const std::string& config = kQwen) {
  directory.write("config.json", config);
  writer.write(directory.file("model.safetensors"));
  const auto opened = Checkpoint::open(directory.file(""));
  EXPECT_TRUE(opened) << opened.error().message();
  return opened ? *opened : nullptr;
}
std::shared_ptr<const Checkpoint> open(const SafetensorsWriter& writer, const std::string& config = kQwen) {
  return open(writer, TempDir(), config);
}

/// The dequantised elements of a row.
std::vector<float> row(const TensorView& tensor, std::int64_t index) {
  std::vector<float> values(static_cast<std::size_t>(tensor.columns()));
  tensor.decode_row(index, values.data());
  return values;
}

/// A weight "a.weight" of ones, whose scales are `dtype` and `data`.
SafetensorsWriter with_scales(const Shape& shape, const std::string& name, const std::string& dtype,
                              const std::vector<std::int64_t>& scales_shape, const std::string& data) {
  std::vector<std::int64_t> dims;
  for (int i = 0; i < shape.rank(); ++i) dims.push_back(shape[i]);
  SafetensorsWriter writer;
  writer.tensor("a.weight", "F8_E4M3", dims, codes(shape.elements()));
  writer.tensor(name, dtype, scales_shape, data);
  return writer;
}

/// Why "a.weight" cannot be had.
std::string refusal(const SafetensorsWriter& writer, const Shape& shape, const std::string& config = kQwen) {
  const TempDir directory;
  const auto checkpoint = open(writer, directory, config);
  if (checkpoint == nullptr) return "";
  const auto tensor = checkpoint->get("a.weight", shape);
  if (tensor) return "";
  const std::string message = tensor.error().message();
  EXPECT_EQ(message.find('\n'), std::string::npos);
  return message.substr(message.find("tensor "));
}

TEST(Fp8Checkpoint, BlocksOfEveryDtype) {
  // 130 x 200: blocks of 128 x 128 with ragged last ones.
  const struct {
    const char* dtype;
    std::string data;
  } kinds[] = {{"F32", bytes_of<float>({0.5f, 1, 2, 4})},
               {"BF16", bytes_of<std::uint16_t>({0x3f00, 0x3f80, 0x4000, 0x4080})},
               {"F16", bytes_of<std::uint16_t>({0x3800, 0x3c00, 0x4000, 0x4400})},
               {"F8_E8M0", bytes_of<std::uint8_t>({126, 127, 128, 129})},
               {"U8", bytes_of<std::uint8_t>({126, 127, 128, 129})}};
  for (const auto& [dtype, data] : kinds) {
    SCOPED_TRACE(dtype);
    const auto checkpoint = open(with_scales({130, 200}, "a.weight_scale_inv", dtype, {2, 2}, data));
    const auto tensor = checkpoint->get("a.weight", {130, 200});
    ASSERT_TRUE(tensor) << tensor.error().message();
    EXPECT_EQ(tensor->format, Format::kFP8_E4M3);
    EXPECT_EQ(row(*tensor, 0)[127], 0.5f);
    EXPECT_EQ(row(*tensor, 127)[128], 1);
    EXPECT_EQ(row(*tensor, 128)[127], 2);
    EXPECT_EQ(row(*tensor, 129)[199], 4);
    EXPECT_TRUE(check_codes(*tensor).ok());
  }
}

TEST(Fp8Checkpoint, OneScaleAndOneForEachRow) {
  for (const std::vector<std::int64_t>& shape : {std::vector<std::int64_t>{}, {1}, {1, 1}}) {
    const auto one = open(with_scales({3, 40}, "a.weight_scale", "F32", shape, bytes_of<float>({0.25f})));
    const auto tensor = one->get("a.weight", {3, 40});
    ASSERT_TRUE(tensor) << tensor.error().message();
    EXPECT_EQ(tensor->scales.block_columns, 0);
    EXPECT_EQ(row(*tensor, 2), std::vector<float>(40, 0.25f));
  }
  for (const std::vector<std::int64_t>& shape : {std::vector<std::int64_t>{3}, {3, 1}}) {
    const auto rows = open(with_scales({3, 40}, "a.weight_scale", "BF16", shape,
                                       bytes_of<std::uint16_t>({0x3f00, 0x3f80, 0x4000})));
    const auto tensor = rows->get("a.weight", {3, 40});
    ASSERT_TRUE(tensor) << tensor.error().message();
    EXPECT_EQ(tensor->scales.block_columns, 0);
    EXPECT_EQ(row(*tensor, 0), std::vector<float>(40, 0.5f));
    EXPECT_EQ(row(*tensor, 2), std::vector<float>(40, 2));
  }
}

TEST(Fp8Checkpoint, BlockSizesComeFromTheConfiguration) {
  const std::vector<float> scales = {1, 2, 3, 4, 5, 6};
  for (const char* quantization :
       {R"({"weight_block_size": [2, 64]})",
        R"({"config_groups": {"g": {"weights": {"block_structure": [2, 64]}}}})"}) {
    const auto checkpoint =
        open(with_scales({5, 100}, "a.weight_scale", "F32", {3, 2}, bytes_of(scales)),
             fmt::format(R"({{"model_type": "qwen3", "quantization_config": {}}})", quantization));
    const auto tensor = checkpoint->get("a.weight", {5, 100});
    ASSERT_TRUE(tensor) << tensor.error().message();
    EXPECT_EQ(row(*tensor, 3)[63], 3);
    EXPECT_EQ(row(*tensor, 4)[64], 6);
  }
}

// ModelOpt's FP8_PB_WO.
TEST(Fp8Checkpoint, BlocksMayHaveFourDimensions) {
  const auto checkpoint =
      open(with_scales({130, 200}, "a.weight_scale", "F32", {2, 1, 2, 1}, bytes_of<float>({0.5f, 1, 2, 4})));
  const auto tensor = checkpoint->get("a.weight", {130, 200});
  ASSERT_TRUE(tensor) << tensor.error().message();
  EXPECT_EQ(row(*tensor, 127)[127], 0.5f);
  EXPECT_EQ(row(*tensor, 127)[128], 1);
  EXPECT_EQ(row(*tensor, 128)[127], 2);
  EXPECT_EQ(row(*tensor, 129)[199], 4);
  EXPECT_EQ(
      refusal(with_scales({130, 200}, "a.weight_scale", "F32", {2, 2, 1, 1}, bytes_of<float>({1, 1, 1, 1})),
              {130, 200}),
      R"(tensor "a.weight" is FP8, but its scales "a.weight_scale": shape [2, 2, 1, 1], expected [2, 2] )"
      "(blocks of 128 x 128), one for each row, or one");
}

TEST(Fp8Checkpoint, ScalesMayLieInAnotherShardAndUnderOtherNames) {
  const TempDir directory;
  directory.write("config.json", kQwen);
  directory.write("model.safetensors.index.json",
                  R"({"weight_map": {"a.weight": "1.safetensors", "a.scale": "2.safetensors"}})");
  SafetensorsWriter()
      .tensor("a.weight", "F8_E4M3", {2, 32}, codes(64))
      .write(directory.file("1.safetensors"));
  SafetensorsWriter()
      .tensor("a.scale", "F32", {1, 1}, bytes_of<float>({3}))
      .write(directory.file("2.safetensors"));
  const auto opened = Checkpoint::open(directory.file(""));
  ASSERT_TRUE(opened) << opened.error().message();
  EXPECT_EQ(row(*(*opened)->get("a.weight", {2, 32}), 1)[31], 3);
}

// Rows of up begin in the middle of a block of the fused tensor.
TEST(Fp8Checkpoint, FusedExpertsKeepTheirBlocks) {
  const std::string prefix = "model.layers.0.mlp.experts.";
  std::vector<float> scales(2 * 3);
  for (std::size_t i = 0; i < scales.size(); ++i) scales[i] = static_cast<float>(i + 1);
  SafetensorsWriter writer;
  writer.tensor(prefix + "gate_up_proj", "F8_E4M3", {2, 300, 32}, codes(2 * 300 * 32));
  writer.tensor(prefix + "gate_up_proj_scale_inv", "F32", {2, 3, 1}, bytes_of(scales));
  writer.tensor(prefix + "down_proj", "F8_E4M3", {2, 32, 150}, codes(2 * 32 * 150));
  writer.tensor(prefix + "down_proj_scale_inv", "F32", {2, 1, 2}, bytes_of<float>({1, 2, 3, 4}));
  const TempDir directory;
  const auto checkpoint = open(writer, directory, R"({"model_type": "qwen3_moe", "num_experts": 2})");
  const auto up = checkpoint->get(prefix + "1.up_proj.weight", {150, 32});
  ASSERT_TRUE(up) << up.error().message();
  EXPECT_EQ(row(*up, 0)[0], 5);    // row 150 of the second expert: its second block
  EXPECT_EQ(row(*up, 105)[0], 5);  // row 255
  EXPECT_EQ(row(*up, 106)[0], 6);
  EXPECT_EQ(row(*checkpoint->get(prefix + "0.gate_proj.weight", {150, 32}), 128)[0], 2);
  EXPECT_EQ(row(*checkpoint->get(prefix + "1.down_proj.weight", {32, 150}), 31)[128], 4);
}

TEST(Fp8Checkpoint, WhatIsWrongWithScalesIsSaid) {
  const auto wrong = [](const std::string& name, const std::string& dtype,
                        const std::vector<std::int64_t>& shape, const std::string& data) {
    return refusal(with_scales({130, 200}, name, dtype, shape, data), {130, 200});
  };
  const std::string fp8 = R"(tensor "a.weight" is FP8, but )";
  SafetensorsWriter alone;
  alone.tensor("a.weight", "F8_E4M3", {2, 32}, codes(64));
  EXPECT_EQ(refusal(alone, {2, 32}),
            fp8 + R"(its scales are missing: neither "a.weight_scale_inv" nor "a.weight_scale" is there)");
  EXPECT_EQ(wrong("a.weight_scale_inv", "F32", {2, 1}, bytes_of<float>({1, 1})),
            fp8 + R"(its scales "a.weight_scale_inv": shape [2, 1], expected [2, 2] (blocks of 128 x 128), )"
                  "one for each row, or one");
  EXPECT_EQ(
      wrong("a.weight_scale_inv", "I32", {1, 1}, bytes_of<float>({1})),
      fp8 + R"(its scales "a.weight_scale_inv" have dtype I32; scales must be F32, BF16, F16 or F8_E8M0)");
  EXPECT_EQ(wrong("a.weight_scale_inv", "F8_E8M0", {1, 1}, codes(1, '\xff')),
            fp8 + R"(its scale 0 of "a.weight_scale_inv" is not a finite number)");
  EXPECT_EQ(wrong("a.weight_scale", "F32", {2, 2}, bytes_of<float>({1, INFINITY, 1, 1})),
            fp8 + R"(its scale 1 of "a.weight_scale" is not a finite number)");
  SafetensorsWriter vector;
  vector.tensor("a.weight", "F8_E4M3", {32}, codes(32));
  EXPECT_EQ(refusal(vector, {32}), fp8 + "FP8 weights must be matrices");
  SafetensorsWriter e5m2;
  e5m2.tensor("a.weight", "F8_E5M2", {2, 32}, codes(64));
  EXPECT_EQ(refusal(e5m2, {2, 32}),
            R"(tensor "a.weight" has dtype F8_E5M2; weights must be F32, F16, BF16 or F8_E4M3)");
}

TEST(Fp8Checkpoint, BlocksThatProductsCannotHaveAreRefused) {
  for (const char* block : {"[128, 100]", "[0, 128]", "[128]", "[128, -32]"}) {
    const TempDir directory;
    directory.write(
        "config.json",
        fmt::format(R"({{"model_type": "qwen3", "quantization_config": {{"weight_block_size": {}}}}})",
                    block));
    SafetensorsWriter().write(directory.file("model.safetensors"));
    const auto opened = Checkpoint::open(directory.file(""));
    ASSERT_FALSE(opened) << block;
    EXPECT_NE(opened.error().message().find("blocks of FP8 scales must be"), std::string::npos)
        << opened.error().message();
  }
}

TEST(Fp8Checkpoint, NanCodesAreFoundWhereTheyAre) {
  for (const char code : {'\x7f', '\xff'}) {
    std::string data = codes(3 * 70);
    data[70 * 2 + 69] = code;
    SafetensorsWriter writer;
    writer.tensor("a.weight", "F8_E4M3", {3, 70}, data);
    writer.tensor("a.weight_scale", "F32", {1}, bytes_of<float>({1}));
    const TempDir directory;
    const auto checkpoint = open(writer, directory);
    const Status checked = check_codes(*checkpoint->get("a.weight", {3, 70}));
    ASSERT_FALSE(checked.ok());
    EXPECT_EQ(
        checked.error().message(),
        fmt::format("tensor a.weight: the weight at row 2, column 69 is NaN (code {}): the file is damaged",
                    code == '\x7f' ? "0x7f" : "0xff"));
  }
}

}  // namespace
}  // namespace eider
