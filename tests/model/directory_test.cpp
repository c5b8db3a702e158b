// Whole Hugging Face directories that are damaged, or whose files contradict each other: one clear error
// each.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>

#include "model/model.h"
#include "tests/support/published_model.h"

namespace eider {
namespace {

using nlohmann::json;
using test::PublishedModel;

constexpr const char* kFirstShard = "model-00001-of-00002.safetensors";
constexpr const char* kSecondShard = "model-00002-of-00002.safetensors";
constexpr const char* kIndex = "model.safetensors.index.json";

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

class Directory : public testing::Test {
 protected:
  explicit Directory(const char* architecture = "qwen3") : model_(architecture, false) {
    model_.write_directory(directory_);
  }

  /// What loading fails with, the directory's name taken out; empty where it succeeds.
  std::string load_error() const {
    const auto load = [&]() -> Result<Model> {
      EIDER_TRY(auto checkpoint, Checkpoint::open(directory_.file("")));
      return load_model(std::move(checkpoint));
    };
    const auto loaded = load();
    if (loaded.ok()) return "";
    std::string message = loaded.error().message();
    const std::string prefix = directory_.file("");
    for (std::size_t at = message.find(prefix); at != std::string::npos; at = message.find(prefix))
      message.erase(at, prefix.size());
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
    return message;
  }

  /// With a configuration in which keys have other values.
  std::string error_with(const json& changes) const {
    json config = model_.config();
    config.merge_patch(changes);
    directory_.write("config.json", config.dump());
    return load_error();
  }

  /// With another header of the first shard, over the same data.
  std::string error_with_header(const std::function<void(json&)>& change) const {
    const std::string whole = read_file(directory_.file(kFirstShard));
    std::uint64_t length = 0;
    std::memcpy(&length, whole.data(), sizeof length);
    json header = json::parse(whole.substr(8, length));
    change(header);
    directory_.write(kFirstShard, test::safetensors_bytes(header.dump(), whole.substr(8 + length)));
    return load_error();
  }

  PublishedModel model_;
  test::TempDir directory_;
};

class MoeDirectory : public Directory {
 protected:
  MoeDirectory() : Directory("qwen3_moe") {}
};

TEST_F(Directory, IsWholeAtFirst) {
  EXPECT_EQ(load_error(), "");
}

TEST_F(Directory, ConfigurationOfAnotherModel) {
  EXPECT_EQ(error_with({{"num_hidden_layers", 2}}),
            ": tensor \"model.layers.2.input_layernorm.weight\" has no place in the model that config.json "
            "describes");
  EXPECT_EQ(error_with({{"num_hidden_layers", 4}}),
            ": tensor \"model.layers.3.input_layernorm.weight\" is missing");
  EXPECT_EQ(error_with({{"hidden_size", 64}}),
            ": tensor \"model.embed_tokens.weight\" has shape [480, 128], expected [480, 64]");
  EXPECT_EQ(error_with({{"vocab_size", 479}}),
            ": tensor \"model.embed_tokens.weight\" has shape [480, 128], expected [479, 128]");
  EXPECT_EQ(error_with({{"num_attention_heads", 8}}),
            ": tensor \"model.layers.0.self_attn.q_proj.weight\" has shape [128, 128], expected [256, 128]");
  EXPECT_EQ(error_with({{"num_key_value_heads", 4}}),
            ": tensor \"model.layers.0.self_attn.k_proj.weight\" has shape [64, 128], expected [128, 128]");
  EXPECT_EQ(error_with({{"num_key_value_heads", 3}}),
            "config.json: num_attention_heads 4 is not a multiple of num_key_value_heads 3");
  EXPECT_EQ(error_with({{"intermediate_size", 128}}),
            ": tensor \"model.layers.0.mlp.gate_proj.weight\" has shape [160, 128], expected [128, 128]");
  EXPECT_EQ(error_with({{"model_type", "llama"}, {"rope_scaling", nullptr}}),
            ": tensor \"model.layers.0.self_attn.k_norm.weight\" has no place in the model that config.json "
            "describes");
  EXPECT_EQ(error_with({{"model_type", "gpt2"}}).substr(0, 40), ": model_type 'gpt2' is not supported (su");
  EXPECT_EQ(error_with({{"hidden_size", nullptr}}), "config.json: hidden_size: missing");
  EXPECT_EQ(error_with({{"hidden_size", "128"}}),
            "config.json: hidden_size: expected an integer, found a string");
  EXPECT_EQ(error_with({{"num_hidden_layers", 1e9}}).substr(0, 30), "config.json: num_hidden_layers");
}

TEST_F(MoeDirectory, ConfigurationOfAnotherModel) {
  EXPECT_EQ(load_error(), "");
  EXPECT_EQ(error_with({{"num_experts", 5}}),
            ": tensor \"model.layers.0.mlp.gate.weight\" has shape [6, 128], expected [5, 128]");
  EXPECT_EQ(error_with({{"moe_intermediate_size", 64}}),
            ": tensor \"model.layers.0.mlp.experts.0.gate_proj.weight\" has shape [96, 128], expected "
            "[64, 128]");
  EXPECT_EQ(error_with({{"num_experts_per_tok", 7}}),
            "config.json: num_experts_per_tok: 7 is outside 1 to 6");
}

TEST_F(Directory, ShardsThatAreTornOrAbsent) {
  const std::string whole = read_file(directory_.file(kSecondShard));
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{5}, std::size_t{100}, whole.size() / 2, whole.size() - 1}) {
    directory_.write(kSecondShard, whole.substr(0, size));
    EXPECT_TRUE(load_error().starts_with(kSecondShard)) << size << ": " << load_error();
  }
  directory_.write(kSecondShard, whole + "x");
  EXPECT_EQ(load_error(), std::string(kSecondShard) + ": 1 bytes after the last tensor belong to none");
  std::filesystem::remove(directory_.file(kSecondShard));
  EXPECT_EQ(load_error(),
            std::string(kIndex) + ": files that it names are missing: \"" + kSecondShard + "\"");
  std::filesystem::create_directory(directory_.file(kSecondShard));
  EXPECT_TRUE(load_error().starts_with(kSecondShard)) << load_error();
}

TEST_F(Directory, HeaderThatClaimsTooMuch) {
  const std::uint64_t huge = std::uint64_t{1} << 60;
  directory_.write(kFirstShard, std::string(reinterpret_cast<const char*>(&huge), 8) + "{}");
  EXPECT_EQ(load_error(), std::string(kFirstShard) +
                              ": not a safetensors file: a header of 1152921504606846976 bytes; at most "
                              "100000000 are allowed");
}

TEST_F(Directory, TensorsThatAreNotWhatTheModelHas) {
  const std::string name = "model.embed_tokens.weight";
  EXPECT_EQ(error_with_header([&](json& header) {
              header[name]["shape"] = {128, 480};
            }),
            ": tensor \"" + name + "\" has shape [128, 480], expected [480, 128]");
  EXPECT_EQ(error_with_header([&](json& header) {
              header[name]["shape"] = {480, 128};
              header[name]["dtype"] = "I16";
            }),
            ": tensor \"" + name + "\" has dtype I16; weights must be F32, F16, BF16 or F8_E4M3");
  EXPECT_EQ(error_with_header([&](json& header) { header[name]["dtype"] = "Q16"; }),
            std::string(kFirstShard) + ": tensor \"" + name + "\": dtype \"Q16\" is unknown");
  EXPECT_EQ(error_with_header([&](json& header) {
              header[name]["dtype"] = "BF16";
              header["renamed"] = header[name];
              header.erase(name);
            }),
            ": tensor \"" + name + "\" is missing");
}

TEST_F(Directory, IndexesThatLie) {
  json index = json::parse(read_file(directory_.file(kIndex)));
  const auto error_of = [&](const char* tensor, const char* file) {
    json lie = index;
    lie["weight_map"][tensor] = file;
    directory_.write(kIndex, lie.dump());
    return load_error();
  };
  EXPECT_EQ(error_of("model.embed_tokens.weight", kSecondShard),
            std::string(kIndex) + ": tensor \"model.embed_tokens.weight\" is said to be in \"" +
                kSecondShard + "\", but is in \"" + kFirstShard + "\"");
  for (const char* outside : {"../model.safetensors", "/etc/passwd", ".."})
    EXPECT_EQ(
        error_of("model.norm.weight", outside),
        std::string(kIndex) + ": tensor \"model.norm.weight\": not the name of a file in the same directory");
  // Of a module that was removed.
  EXPECT_EQ(error_of("model.vision.weight", kFirstShard), "");
}

}  // namespace
}  // namespace eider
