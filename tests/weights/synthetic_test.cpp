// Synthetic models: the same weights whoever makes them, with the statistics that are promised, in memory as
// in the file.
#include "weights/synthetic.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cmath>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <set>

#include "format/all_formats.h"
#include "format/storage_format.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_shape.h"
#include "weights/random_weights.h"

namespace eider {
namespace {

SyntheticModel make(const SyntheticSpec& spec, int threads = 2) {
  ThreadPool pool(threads);
  auto model = SyntheticModel::create(spec, pool);
  EXPECT_TRUE(model.ok()) << model.error().message();
  return std::move(model).value();
}

TEST(RandomWeights, HaveTheDeviationAndNoBiasInEveryFormat) {
  ThreadPool pool(2);
  for (const Format format : kAllFormats) {
    SCOPED_TRACE(format_name(format));
    constexpr std::int64_t kColumns = 256 * 4096;
    const std::int64_t blocks = kColumns / format_block_elems(format);
    std::vector<std::byte> bytes(static_cast<std::size_t>(format_row_bytes(format, kColumns)));
    fill_random_weights(format, 7, blocks, bytes.data(), pool);
    std::vector<float> values(kColumns);
    decode_row(format, bytes.data(), kColumns, values.data());
    double sum = 0, squares = 0;
    float largest = 0;
    for (float& value : values) {
      if (format == Format::kFP8_E4M3) value *= kRandomFp8Scale;
      sum += value;
      squares += static_cast<double>(value) * value;
      largest = std::max(largest, std::abs(value));
    }
    EXPECT_NEAR(std::sqrt(squares / kColumns), 0.02, 0.0002);
    EXPECT_NEAR(sum / kColumns, 0, 0.0002);
    EXPECT_LT(largest, 0.1F);
  }
}

TEST(RandomWeights, FloatsAreNeverZero) {
  ThreadPool pool(1);
  for (const Format format : {Format::kF32, Format::kF16, Format::kBF16}) {
    std::vector<std::byte> bytes(static_cast<std::size_t>(format_row_bytes(format, 1 << 20)));
    fill_random_weights(format, 7, 1 << 20, bytes.data(), pool);
    std::vector<float> values(1 << 20);
    decode_row(format, bytes.data(), 1 << 20, values.data());
    for (const float value : values) ASSERT_NE(value, 0.0F) << format_name(format);
  }
}

TEST(RandomWeights, DependOnTheSeedAndNotOnThreads) {
  constexpr std::int64_t kBlocks = 10000;  // of Q6_K's odd size, and no multiple of what a thread takes
  const auto fill = [](std::uint64_t seed, int threads) {
    ThreadPool pool(threads);
    std::vector<std::byte> bytes(kBlocks * sizeof(Q6_K::Block));
    fill_random_weights(Format::kQ6_K, seed, kBlocks, bytes.data(), pool);
    return bytes;
  };
  const auto one = fill(1, 1);
  EXPECT_EQ(one, fill(1, 3));
  EXPECT_EQ(one, fill(1, 16));
  EXPECT_NE(one, fill(2, 1));
}

TEST(SyntheticModel, FilesHoldWhatMemoryHolds) {
  const test::TempDir folder;
  for (const std::string_view architecture : {"llama", "qwen3", "qwen3moe", "gemma3"}) {
    for (const Format format : {Format::kQ4_K, Format::kQ5_1, Format::kBF16}) {
      SCOPED_TRACE(fmt::format("{} {}", architecture, format_name(format)));
      const SyntheticModel model = make({.shape = tiny_shape(architecture), .format = format});
      const auto in_memory = model.checkpoint();
      ASSERT_TRUE(in_memory.ok()) << in_memory.error().message();
      const std::string path = folder.file("model.gguf");
      const Status written = model.write(path);
      ASSERT_TRUE(written.ok()) << written.error().message();
      const auto from_file = Checkpoint::open(path);
      ASSERT_TRUE(from_file.ok()) << from_file.error().message();

      const auto& expected = (*in_memory)->tensors();
      ASSERT_EQ((*from_file)->tensors().size(), expected.size());
      EXPECT_EQ((*from_file)->weight_bytes(), (*in_memory)->weight_bytes());
      for (const auto& [name, tensor] : (*from_file)->tensors()) {
        ASSERT_TRUE(expected.contains(name)) << name;
        const TensorView& other = expected.at(name);
        EXPECT_EQ(tensor.shape, other.shape) << name;
        ASSERT_EQ(tensor.format, other.format) << name;
        EXPECT_EQ(std::memcmp(tensor.data, other.data, static_cast<std::size_t>(tensor.bytes())), 0) << name;
      }
      ASSERT_TRUE((*from_file)->vocabulary().has_value());
      EXPECT_TRUE((*from_file)->vocabulary()->check().ok());
      EXPECT_EQ((*from_file)->vocabulary()->tokens.size(), 300U);
    }
  }
}

TEST(SyntheticModel, Fp8DirectoriesHoldWhatMemoryHolds) {
  for (const std::string_view architecture : {"llama", "qwen3", "qwen3moe", "gemma3"}) {
    SCOPED_TRACE(architecture);
    const test::TempDir folder;
    const SyntheticModel model = make({.shape = tiny_shape(architecture), .format = Format::kFP8_E4M3});
    const auto in_memory = model.checkpoint();
    ASSERT_TRUE(in_memory.ok()) << in_memory.error().message();
    const Status written = model.write(folder.file("model"));
    ASSERT_TRUE(written.ok()) << written.error().message();
    const auto from_file = Checkpoint::open(folder.file("model"));
    ASSERT_TRUE(from_file.ok()) << from_file.error().message();
    EXPECT_EQ((*from_file)->source(), "safetensors, 1 file");
    int scaled = 0;
    for (const auto& [name, expected] : (*in_memory)->tensors()) {
      const auto tensor = (*from_file)->get(name, expected.shape);
      ASSERT_TRUE(tensor.ok()) << tensor.error().message();
      ASSERT_EQ(tensor->format, expected.format) << name;
      EXPECT_EQ(tensor->format == Format::kBF16,
                name.starts_with("lm_head") || name.find("embed") != name.npos);
      std::vector<float> row(static_cast<std::size_t>(tensor->columns())), other(row.size());
      for (const std::int64_t index : {std::int64_t{0}, tensor->rows() - 1}) {
        tensor->decode_row(index, row.data());
        expected.decode_row(index, other.data());
        EXPECT_EQ(row, other) << name;
      }
      if (tensor->format == Format::kFP8_E4M3) ++scaled;
    }
    EXPECT_EQ(scaled, architecture == "qwen3moe" ? 2 * (4 + 3 * 8) : 2 * 7);
  }
}

TEST(SyntheticModel, TensorsDifferFromEachOther) {
  const SyntheticModel model = make({.shape = tiny_shape("qwen3moe"), .format = Format::kQ4_0});
  std::set<std::string> seen;
  for (const TensorView& tensor : model.tensors()) {
    const auto* bytes = reinterpret_cast<const char*>(tensor.data);
    EXPECT_TRUE(seen.insert(std::string(bytes, 128)).second) << tensor.name;
  }
}

TEST(SyntheticModel, EveryShapeFitsEveryFormat) {
  ThreadPool pool(2);
  for (const ModelShape& shape : model_shapes()) {
    EXPECT_TRUE(find_model_shape(shape.name).ok());
    EXPECT_EQ(shape.hidden_size % 256, 0) << shape.name;
    EXPECT_EQ(shape.intermediate_size % 256, 0) << shape.name;
    EXPECT_EQ(shape.moe_intermediate_size % 256, 0) << shape.name;
    EXPECT_EQ(shape.num_attention_heads % shape.num_key_value_heads, 0) << shape.name;
  }
}

/// Published counts of parameters, in billions, embeddings included once where they are tied.
TEST(SyntheticModel, HasThePublishedNumberOfParameters) {
  const auto parameters = [](std::string_view name, std::int64_t layers) {
    ThreadPool pool(2);
    auto model = SyntheticModel::create(
        {.shape = *find_model_shape(name), .format = Format::kQ4_0, .layers = layers}, pool);
    double total = 0;
    for (const TensorView& tensor : model->tensors()) total += static_cast<double>(tensor.shape.elements());
    return total / 1e9;
  };
  EXPECT_NEAR(parameters("qwen3-0.6b", 0), 0.596, 0.001);
  EXPECT_NEAR(parameters("qwen3-4b", 0), 4.022, 0.002);
  EXPECT_NEAR(parameters("llama-3.1-8b", 0), 8.030, 0.002);
  EXPECT_NEAR(parameters("qwen3-30b-a3b", 0), 30.53, 0.02);
  EXPECT_NEAR(parameters("gemma3-4b", 0), 3.880, 0.002);
  EXPECT_LT(parameters("qwen3-30b-a3b", 4), 3.2);
}

TEST(SyntheticModel, RefusesWhatMakesNoSense) {
  ThreadPool pool(1);
  const auto message = [&](const SyntheticSpec& spec) {
    const auto model = SyntheticModel::create(spec, pool);
    return model.ok() ? "" : model.error().message();
  };
  EXPECT_NE(message({.shape = tiny_shape("qwen3"), .layers = 3}).find("3 layers"), std::string::npos);
  ModelShape narrow = tiny_shape("qwen3");
  narrow.hidden_size = 96;
  EXPECT_NE(message({.shape = narrow, .format = Format::kQ4_K}).find("multiple of 256"), std::string::npos);
  EXPECT_NE(find_model_shape("qwen9").error().message().find("qwen3-0.6b"), std::string::npos);
}

TEST(SyntheticModel, AFileThatCannotBeWrittenLeavesNothing) {
  const test::TempDir folder;
  const SyntheticModel model = make({.shape = tiny_shape("qwen3")});
  EXPECT_FALSE(model.write(folder.file("absent/model.gguf")).ok());
  EXPECT_FALSE(model.write(folder.file("")).ok());
  const Status stopped = model.write(folder.file("a.gguf"), [](std::int64_t, std::int64_t) { return false; });
  EXPECT_NE(stopped.error().message().find("interrupted"), std::string::npos);

  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  auto* const handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit small = before;
  small.rlim_cur = 100000;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const Status full = model.write(folder.file("b.gguf"));
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_NE(full.error().message().find("b.gguf: cannot write: "), std::string::npos)
      << full.error().message();
  EXPECT_TRUE(std::filesystem::is_empty(folder.file("")));
}

}  // namespace
}  // namespace eider
