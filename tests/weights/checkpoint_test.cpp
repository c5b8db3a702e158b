#include "weights/checkpoint.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>

#include "tests/support/json_printer.h"
#include "weights/safetensors.h"

namespace eider {
namespace {

using nlohmann::json;

/// A golden model's folder: in the repository, or beside it.
std::string golden(const std::string& name) {
  const std::string committed = std::string(EIDER_TEST_DATA) + "/golden/" + name;
  return std::filesystem::exists(committed) ? committed : std::string(EIDER_SHARED) + "/goldens/" + name;
}

class Golden : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    directory_ = golden(GetParam());
    if (!std::filesystem::exists(directory_)) GTEST_SKIP() << directory_ << " is absent";
  }
  std::string directory_;
};

/// Keys that a model's results depend on.
json numeric_keys(const Config& config) {
  json kept;
  for (const char* key : {"model_type",
                          "hidden_size",
                          "num_hidden_layers",
                          "num_attention_heads",
                          "num_key_value_heads",
                          "intermediate_size",
                          "vocab_size",
                          "max_position_embeddings",
                          "rms_norm_eps",
                          "rope_theta",
                          "rope_scaling",
                          "rope_local_base_freq",
                          "tie_word_embeddings",
                          "num_experts",
                          "num_experts_per_tok",
                          "moe_intermediate_size",
                          "norm_topk_prob",
                          "sliding_window",
                          "sliding_window_pattern",
                          "query_pre_attn_scalar",
                          "torch_dtype",
                          "hidden_act",
                          "hidden_activation",
                          "quantization_config"}) {
    if (config.has(key)) kept[key] = config.json()[key];
  }
  return kept;
}

TEST_P(Golden, BothConfigurationStylesAreOne) {
  const auto written = Checkpoint::open(directory_);
  const auto published = Checkpoint::open(directory_ + "/config_published.json");
  ASSERT_TRUE(written) << written.error().message();
  ASSERT_TRUE(published) << published.error().message();
  EXPECT_EQ(numeric_keys((*written)->config()), numeric_keys((*published)->config()));
  for (const char* renamed :
       {"rope_parameters", "dtype", "num_local_experts", "_sliding_window_pattern", "text_config"})
    EXPECT_FALSE((*written)->config().has(renamed)) << renamed;
  EXPECT_EQ((*written)->tensors().size(), (*published)->tensors().size());
}

TEST_P(Golden, TensorsAreThoseOfTheFile) {
  const auto checkpoint = Checkpoint::open(directory_);
  ASSERT_TRUE(checkpoint) << checkpoint.error().message();
  const auto file = SafetensorsFile::open(directory_ + "/model.safetensors");
  ASSERT_TRUE(file) << file.error().message();
  EXPECT_EQ((*checkpoint)->source(), "safetensors, 1 file");
  EXPECT_FALSE((*checkpoint)->vocabulary());

  const bool gemma = *(*checkpoint)->config().string("model_type") == "gemma3_text";
  std::int64_t bytes = 0;
  for (const auto& [name, entry] : file->entries()) {
    const auto tensor = (*checkpoint)->get(name, entry.shape);
    ASSERT_TRUE(tensor) << tensor.error().message();
    bytes += tensor->bytes();
    if (!gemma || !name.ends_with("norm.weight")) {
      EXPECT_EQ(std::memcmp(tensor->data, entry.bytes.data(), entry.bytes.size()), 0) << name;
      continue;
    }
    ASSERT_EQ(tensor->format, Format::kF32);
    for (std::int64_t i = 0; i < tensor->columns(); ++i) {
      std::uint16_t bf16 = 0;
      std::memcpy(&bf16, entry.bytes.data() + 2 * i, 2);
      const std::uint32_t bits = static_cast<std::uint32_t>(bf16) << 16;
      float weight = 0;
      float factor = 0;
      std::memcpy(&weight, &bits, 4);
      std::memcpy(&factor, tensor->data + 4 * i, 4);
      EXPECT_EQ(factor, 1.0f + weight) << name << " " << i;
    }
  }
  EXPECT_EQ((*checkpoint)->weight_bytes(), bytes);
}

TEST_P(Golden, PreloadWalksTheFileOnce) {
  const auto checkpoint = Checkpoint::open(directory_);
  ASSERT_TRUE(checkpoint) << checkpoint.error().message();
  std::int64_t last = 0;
  std::int64_t announced = 0;
  (*checkpoint)->preload([&](std::int64_t done, std::int64_t total) {
    EXPECT_GT(done, last);
    last = done;
    announced = total;
    return true;
  });
  EXPECT_EQ(last, announced);
  EXPECT_GT(announced, 0);
}

TEST_P(Golden, ReleasedWeightsStayReadable) {
  const auto checkpoint = Checkpoint::open(directory_);
  ASSERT_TRUE(checkpoint) << checkpoint.error().message();
  std::int64_t mapped = 0;
  for (const auto& [name, tensor] : (*checkpoint)->tensors()) {
    const std::vector<std::byte> before(tensor.data, tensor.data + tensor.bytes());
    mapped += (*checkpoint)->mapped_bytes(tensor);
    (*checkpoint)->release(tensor);
    EXPECT_EQ(std::memcmp(tensor.data, before.data(), before.size()), 0) << name;
  }
  EXPECT_GT(mapped, 0);
}

INSTANTIATE_TEST_SUITE_P(Models, Golden,
                         testing::Values("llama", "llama_tied", "qwen2", "qwen3", "qwen3_moe", "gemma3",
                                         "qwen3_fp8"),
                         [](const auto& model) { return std::string(model.param); });

TEST(Checkpoint, GoldenConfigurationValues) {
  const auto llama = Checkpoint::open(golden("llama"));
  ASSERT_TRUE(llama) << llama.error().message();
  const auto scaling = (*llama)->config().object("rope_scaling");
  ASSERT_TRUE(scaling) << scaling.error().message();
  EXPECT_EQ(*scaling->string("rope_type"), "llama3");
  EXPECT_EQ(*scaling->integer("original_max_position_embeddings"), 64);
  EXPECT_EQ(*(*llama)->config().number("rope_theta"), 10000.0);

  const auto gemma = Checkpoint::open(golden("gemma3"));
  ASSERT_TRUE(gemma) << gemma.error().message();
  EXPECT_EQ(*(*gemma)->config().number("rope_theta"), 1e6);
  EXPECT_EQ(*(*gemma)->config().number("rope_local_base_freq"), 1e4);
  EXPECT_EQ(*(*gemma)->config().object("rope_scaling")->number("factor"), 8.0);
  EXPECT_EQ((*gemma)->config().strings("layer_types")->at(5), "full_attention");
  EXPECT_TRUE(*(*gemma)->config().boolean("tie_word_embeddings"));

  const auto moe = Checkpoint::open(golden("qwen3_moe"));
  ASSERT_TRUE(moe) << moe.error().message();
  EXPECT_EQ(*(*moe)->config().integer("num_experts"), 16);
  EXPECT_FALSE((*moe)->config().has("rope_scaling"));
}

TEST(Checkpoint, ErrorsOfGet) {
  const std::string path = golden("llama");
  const auto checkpoint = Checkpoint::open(path);
  ASSERT_TRUE(checkpoint) << checkpoint.error().message();
  EXPECT_EQ((*checkpoint)->get("model.norm.bias", Shape{128}).error().message(),
            path + ": tensor \"model.norm.bias\" is missing");
  EXPECT_EQ((*checkpoint)->get("model.norm.weight", Shape{64}).error().message(),
            path + ": tensor \"model.norm.weight\" has shape [128], expected [64]");
  EXPECT_FALSE((*checkpoint)->get_optional("model.norm.weight", Shape{64}));
  const auto absent = (*checkpoint)->get_optional("model.norm.bias", Shape{128});
  ASSERT_TRUE(absent);
  EXPECT_FALSE(*absent);
}

TEST(Checkpoint, SeedsOfTheFuzzTargetsOpen) {
  int count = 0;
  for (const auto& seed : std::filesystem::directory_iterator(EIDER_TEST_DATA "/../fuzz/seeds/gguf_fuzz")) {
    const auto checkpoint = Checkpoint::open(seed.path().string());
    EXPECT_TRUE(checkpoint) << checkpoint.error().message();
    ++count;
  }
  EXPECT_EQ(count, 3);
}

class RealModel : public testing::Test {
 protected:
  void SetUp() override {
    const char* models = std::getenv("EIDER_MODELS");
    if (models == nullptr) GTEST_SKIP() << "EIDER_MODELS is not set to the folder of the real models";
    directory_ = models;
  }
  std::shared_ptr<const Checkpoint> open(const std::string& name) {
    const auto begin = std::chrono::steady_clock::now();
    auto checkpoint = Checkpoint::open(directory_ + "/" + name);
    opening_ = std::chrono::steady_clock::now() - begin;
    EXPECT_TRUE(checkpoint) << checkpoint.error().message();
    return checkpoint ? *checkpoint : nullptr;
  }
  std::string directory_;
  std::chrono::duration<double> opening_{};
};

TEST_F(RealModel, SmolLM2) {
  const auto checkpoint = open("SmolLM2-135M-Instruct.Q4_1.gguf");
  ASSERT_NE(checkpoint, nullptr);
  EXPECT_EQ(checkpoint->source(), "GGUF v3, 1 part");
  const Config& config = checkpoint->config();
  EXPECT_EQ(*config.string("model_type"), "llama");
  EXPECT_EQ(*config.integer("num_key_value_heads"), 3);
  EXPECT_EQ(*config.number("rope_theta"), 100000.0);
  EXPECT_EQ(static_cast<float>(*config.number("rms_norm_eps")), 1e-5f);
  EXPECT_EQ(*config.integer("vocab_size"), 49152);
  EXPECT_TRUE(*config.boolean("tie_word_embeddings"));
  EXPECT_FALSE(config.has("head_dim") || config.has("rope_scaling") || config.has("sliding_window"));
  EXPECT_EQ(checkpoint->tensors().size(), 272u);
  EXPECT_EQ(checkpoint->get("model.embed_tokens.weight", Shape{49152, 576})->format, Format::kQ8_0);
  EXPECT_TRUE(checkpoint->get("model.layers.29.mlp.down_proj.weight", Shape{576, 1536}));
  EXPECT_TRUE(checkpoint->get("model.layers.29.self_attn.k_proj.weight", Shape{192, 576}));
  EXPECT_TRUE(checkpoint->get("model.layers.0.post_attention_layernorm.weight", Shape{576}));
  ASSERT_TRUE(checkpoint->vocabulary());
}

TEST_F(RealModel, Gemma3) {
  const auto checkpoint = open("gemma-3-270m-q4_k_m.gguf");
  ASSERT_NE(checkpoint, nullptr);
  const Config& config = checkpoint->config();
  EXPECT_EQ(*config.string("model_type"), "gemma3_text");
  EXPECT_EQ(*config.integer("head_dim"), 256);
  EXPECT_EQ(*config.integer("query_pre_attn_scalar"), 256);
  EXPECT_EQ(*config.integer("sliding_window"), 512);
  EXPECT_EQ(*config.integer("sliding_window_pattern"), 6);
  EXPECT_EQ(*config.number("rope_theta"), 1e6);
  EXPECT_EQ(*config.number("rope_local_base_freq"), 1e4);
  EXPECT_EQ(checkpoint->tensors().size(), 236u);
  EXPECT_TRUE(checkpoint->get("model.layers.17.post_feedforward_layernorm.weight", Shape{640}));
  EXPECT_TRUE(checkpoint->get("model.layers.17.pre_feedforward_layernorm.weight", Shape{640}));
  EXPECT_TRUE(checkpoint->get("model.layers.17.self_attn.q_norm.weight", Shape{256}));
  ASSERT_TRUE(checkpoint->vocabulary());
  EXPECT_EQ(checkpoint->vocabulary()->tokens.size(), 262144u);
#if defined(NDEBUG) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  EXPECT_LT(opening_.count(), 0.3) << "seconds to open a vocabulary of 262,144 tokens";
#endif
}

}  // namespace
}  // namespace eider
