// Checkpoints from Hugging Face directories made here: shards, prefixes, fused experts, unaligned and foreign
// tensors.
#include <gtest/gtest.h>

#include <cstring>

#include "tests/support/safetensors_writer.h"
#include "weights/checkpoint.h"

namespace eider {
namespace {

using test::SafetensorsWriter;
using test::TempDir;

constexpr const char* kLlama = R"({"model_type": "llama"})";

std::string bytes_of(std::vector<float> values) {
  return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
}

std::vector<float> values_of(const Checkpoint& checkpoint, const std::string& name, const Shape& shape) {
  const auto tensor = checkpoint.get(name, shape);
  EXPECT_TRUE(tensor) << tensor.error().message();
  if (!tensor) return {};
  EXPECT_EQ(tensor->format, Format::kF32);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(tensor->data) % 4, 0u);
  std::vector<float> values(static_cast<std::size_t>(shape.elements()));
  std::memcpy(values.data(), tensor->data, values.size() * sizeof(float));
  return values;
}

/// What opening a path in the folder fails with, the folder's name taken out.
std::string opening_error(const TempDir& directory, const std::string& name) {
  const auto opened = Checkpoint::open(name.empty() ? directory.file("") : directory.file(name));
  if (opened) return "";
  std::string message = opened.error().message();
  const std::string prefix = directory.file("");
  for (std::size_t at = message.find(prefix); at != std::string::npos; at = message.find(prefix))
    message.erase(at, prefix.size());
  return message;
}

TEST(SafetensorsCheckpoint, EveryWayToNameOne) {
  const TempDir directory;
  directory.write("config.json", kLlama);
  directory.write("other.json", R"({"model_type": "qwen3"})");
  SafetensorsWriter().tensor("a", "F32", {1}, bytes_of({1})).write(directory.file("model.safetensors"));
  SafetensorsWriter().tensor("b", "F32", {1}, bytes_of({2})).write(directory.file("tuned.safetensors"));
  for (const char* name : {"", "config.json", "model.safetensors"}) {
    const auto opened = Checkpoint::open(directory.file(name));
    ASSERT_TRUE(opened) << opened.error().message();
    EXPECT_EQ(values_of(**opened, "a", {1}), std::vector<float>{1});
    EXPECT_EQ(*(*opened)->config().string("model_type"), "llama");
  }
  EXPECT_EQ(*(*Checkpoint::open(directory.file("other.json")))->config().string("model_type"), "qwen3");
  EXPECT_NE((*Checkpoint::open(directory.file("tuned.safetensors")))->find("b"), nullptr);
}

TEST(SafetensorsCheckpoint, ShardsAreOneModel) {
  const TempDir directory;
  directory.write("config.json", kLlama);
  directory.write(
      "model.safetensors.index.json",
      R"({"metadata": {}, "weight_map": {"a": "one.safetensors", "b": "two.safetensors", "gone": "one.safetensors"}})");
  SafetensorsWriter().tensor("a", "F32", {1}, bytes_of({1})).write(directory.file("one.safetensors"));
  SafetensorsWriter()
      .tensor("b", "F32", {1}, bytes_of({2}))
      .tensor("not.in.the.index", "F32", {1}, bytes_of({3}))
      .write(directory.file("two.safetensors"));
  for (const char* name : {"", "model.safetensors.index.json"}) {
    const auto opened = Checkpoint::open(directory.file(name));
    ASSERT_TRUE(opened) << opened.error().message();
    EXPECT_EQ((*opened)->source(), "safetensors, 2 shards");
    EXPECT_EQ(values_of(**opened, "b", {1}), std::vector<float>{2});
    EXPECT_EQ(values_of(**opened, "not.in.the.index", {1}), std::vector<float>{3});
    EXPECT_EQ((*opened)->weight_bytes(), 12);
  }
}

TEST(SafetensorsCheckpoint, TextPartOfAMultimodalModel) {
  for (const std::string prefix : {"language_model.model.", "model.language_model."}) {
    const TempDir directory;
    directory.write("config.json",
                    R"({"model_type": "gemma3", "text_config": {"model_type": "gemma3_text"}})");
    SafetensorsWriter()
        .tensor(prefix + "norm.weight", "F32", {2}, bytes_of({0.5f, -1}))
        .tensor(prefix + "layers.0.mlp.up_proj.weight", "F32", {1, 2}, bytes_of({3, 4}))
        .tensor("vision_tower.patch.weight", "F32", {1}, bytes_of({5}))
        .tensor("model.vision_tower.patch.weight", "F32", {1}, bytes_of({5}))
        .tensor("multi_modal_projector.norm.weight", "F32", {1}, bytes_of({5}))
        .write(directory.file("model.safetensors"));
    const auto opened = Checkpoint::open(directory.file(""));
    ASSERT_TRUE(opened) << opened.error().message();
    EXPECT_EQ((*opened)->tensors().size(), 2u);
    EXPECT_EQ(values_of(**opened, "model.norm.weight", {2}), (std::vector<float>{1.5f, 0}));
    EXPECT_EQ(values_of(**opened, "model.layers.0.mlp.up_proj.weight", {1, 2}), (std::vector<float>{3, 4}));
  }
}

TEST(SafetensorsCheckpoint, UnalignedTensorsAreCopied) {
  for (std::size_t spaces = 0; spaces < 8; ++spaces) {
    const TempDir directory;
    directory.write("config.json", kLlama);
    SafetensorsWriter()
        .tensor("a", "F32", {2}, bytes_of({1, 2}))
        .pad_header(spaces)
        .write(directory.file("model.safetensors"));
    const auto opened = Checkpoint::open(directory.file(""));
    ASSERT_TRUE(opened) << opened.error().message();
    EXPECT_EQ(values_of(**opened, "a", {2}), (std::vector<float>{1, 2}));
  }
}

TEST(SafetensorsCheckpoint, FusedExpertsBecomeMatrices) {
  const TempDir directory;
  directory.write("config.json", R"({"model_type": "qwen3_moe", "num_experts": 2})");
  SafetensorsWriter()
      .tensor("model.layers.3.mlp.experts.gate_up_proj", "F32", {2, 4, 1}, bytes_of({0, 1, 2, 3, 4, 5, 6, 7}))
      .tensor("model.layers.3.mlp.experts.down_proj", "F32", {2, 1, 2}, bytes_of({10, 11, 12, 13}))
      .write(directory.file("model.safetensors"));
  const auto opened = Checkpoint::open(directory.file(""));
  ASSERT_TRUE(opened) << opened.error().message();
  const std::string experts = "model.layers.3.mlp.experts.";
  EXPECT_EQ(values_of(**opened, experts + "0.gate_proj.weight", {2, 1}), (std::vector<float>{0, 1}));
  EXPECT_EQ(values_of(**opened, experts + "0.up_proj.weight", {2, 1}), (std::vector<float>{2, 3}));
  EXPECT_EQ(values_of(**opened, experts + "1.gate_proj.weight", {2, 1}), (std::vector<float>{4, 5}));
  EXPECT_EQ(values_of(**opened, experts + "1.up_proj.weight", {2, 1}), (std::vector<float>{6, 7}));
  EXPECT_EQ(values_of(**opened, experts + "1.down_proj.weight", {1, 2}), (std::vector<float>{12, 13}));
  EXPECT_EQ((*opened)->weight_bytes(), 48);
}

TEST(SafetensorsCheckpoint, OtherDtypesAreNamedWhenAskedFor) {
  const TempDir directory;
  directory.write("config.json", kLlama);
  SafetensorsWriter().tensor("a", "U8", {4}, "1234").write(directory.file("model.safetensors"));
  const auto opened = Checkpoint::open(directory.file(""));
  ASSERT_TRUE(opened) << opened.error().message();
  EXPECT_EQ((*opened)->find("a"), nullptr);
  EXPECT_EQ((*opened)->get_optional("a", {4}).error().message(),
            directory.file("") + ": tensor \"a\" has dtype U8; weights must be F32, F16, BF16 or F8_E4M3");
}

TEST(SafetensorsCheckpoint, SaysWhatIsWrong) {
  const TempDir directory;
  EXPECT_EQ(opening_error(directory, ""),
            ": a directory without config.json; give a .gguf file or the directory of a model");
  EXPECT_EQ(opening_error(directory, "absent"), "absent: no such file or directory");
  EXPECT_EQ(opening_error(directory, "absent.gguf"), "absent.gguf: cannot open: No such file or directory");
  directory.write("text", "hello");
  EXPECT_EQ(opening_error(directory, "text"),
            "text: not a model; a .gguf or .safetensors file or a directory with config.json is");
  directory.write("config.json", kLlama);
  EXPECT_EQ(opening_error(directory, ""),
            ": neither model.safetensors nor model.safetensors.index.json is beside config.json");
  directory.write("model.safetensors", "");
  EXPECT_EQ(
      opening_error(directory, ""),
      "model.safetensors: the file ends inside the header's length, at byte 0: it is cut off or damaged");
  directory.write("config.json", "{");
  EXPECT_EQ(opening_error(directory, "").substr(0, 48), "config.json: parse error at line 1, column 2: sy");
  directory.write("config.json", "[]");
  EXPECT_EQ(opening_error(directory, ""), "config.json: expected an object");
}

TEST(SafetensorsCheckpoint, SaysWhatIsWrongWithAnIndex) {
  const TempDir directory;
  directory.write("config.json", kLlama);
  const auto index_error = [&](const char* index) {
    directory.write("model.safetensors.index.json", index);
    return opening_error(directory, "");
  };
  EXPECT_EQ(index_error("[]"), "model.safetensors.index.json: weight_map is missing");
  EXPECT_EQ(index_error(R"({"weight_map": {}})"),
            "model.safetensors.index.json: weight_map names no tensors");
  for (const char* file : {"1", "null", R"("")", R"(".")", R"("..")", R"("../secret")", R"("/etc/passwd")",
                           R"("sub/one")", R"("one\u0000")"})
    EXPECT_EQ(index_error(fmt::format(R"({{"weight_map": {{"a": {}}}}})", file).c_str()),
              "model.safetensors.index.json: tensor \"a\": not the name of a file in the same directory")
        << file;
  EXPECT_EQ(index_error(R"({"weight_map": {"a": "one", "b": "two"}})"),
            "model.safetensors.index.json: files that it names are missing: \"one\", \"two\"");
  SafetensorsWriter().tensor("a", "F32", {1}, bytes_of({1})).write(directory.file("one"));
  SafetensorsWriter().tensor("b", "F32", {1}, bytes_of({1})).write(directory.file("two"));
  EXPECT_EQ(index_error(R"({"weight_map": {"a": "one", "b": "two"}})"), "");
  EXPECT_EQ(index_error(R"({"weight_map": {"a": "two", "b": "two", "c": "one"}})"),
            "model.safetensors.index.json: tensor \"a\" is said to be in \"two\", but is in \"one\"");
  SafetensorsWriter().tensor("a", "F32", {1}, bytes_of({1})).write(directory.file("two"));
  EXPECT_EQ(index_error(R"({"weight_map": {"c": "one", "b": "two"}})"), "two: tensor \"a\" appears twice");
}

TEST(SafetensorsCheckpoint, TheHeadOfATiedModelIsNotRead) {
  const TempDir directory;
  directory.write("config.json", R"({"model_type": "qwen3", "tie_word_embeddings": true})");
  SafetensorsWriter()
      .tensor("lm_head.weight", "F32", {1}, bytes_of({1}))
      .tensor("model.embed_tokens.weight", "F32", {1}, bytes_of({1}))
      .write(directory.file("model.safetensors"));
  const auto opened = Checkpoint::open(directory.file(""));
  ASSERT_TRUE(opened) << opened.error().message();
  EXPECT_EQ((*opened)->find("lm_head.weight"), nullptr);
  EXPECT_EQ((*opened)->weight_bytes(), 4);
}

TEST(SafetensorsCheckpoint, ExpertsOfNoBytesAreRefused) {
  const TempDir directory;
  directory.write("config.json", R"({"model_type": "qwen3_moe", "num_experts": 65536})");
  SafetensorsWriter()
      .tensor("model.layers.0.mlp.experts.down_proj", "F32", {65536, 8, 0}, "")
      .write(directory.file("model.safetensors"));
  EXPECT_EQ(
      opening_error(directory, ""),
      "model.safetensors: tensor \"model.layers.0.mlp.experts.down_proj\": shape [65536, 8, 0], expected "
      "the matrices of 65536 experts");
}

}  // namespace
}  // namespace eider
