#include "weights/config_style.h"

#include <gtest/gtest.h>

#include "tests/support/json_printer.h"

namespace eider {
namespace {

using nlohmann::json;

json normalised(json published) {
  const auto config = normalise_config(std::move(published), "config.json");
  EXPECT_TRUE(config) << config.error().message();
  return config ? config->json() : json();
}

std::string refusal(json published) {
  const auto config = normalise_config(std::move(published), "config.json");
  return config ? "" : config.error().message();
}

TEST(ConfigStyle, FlatRopeParameters) {
  EXPECT_EQ(normalised({{"model_type", "llama"},
                        {"dtype", "bfloat16"},
                        {"num_attention_heads", 4},
                        {"rope_parameters", {{"rope_type", "llama3"}, {"factor", 8.0}, {"rope_theta", 5e5}}},
                        {"head_dim", nullptr}}),
            (json{{"model_type", "llama"},
                  {"torch_dtype", "bfloat16"},
                  {"num_attention_heads", 4},
                  {"num_key_value_heads", 4},
                  {"rope_theta", 5e5},
                  {"rope_scaling", {{"rope_type", "llama3"}, {"factor", 8.0}}},
                  {"tie_word_embeddings", false}}));
}

TEST(ConfigStyle, UnscaledRopeHasNoScaling) {
  const json expected = {{"model_type", "qwen3"}, {"rope_theta", 1e6}, {"tie_word_embeddings", false}};
  EXPECT_EQ(normalised({{"model_type", "qwen3"}, {"rope_theta", 1e6}, {"rope_scaling", nullptr}}), expected);
  EXPECT_EQ(
      normalised({{"model_type", "qwen3"}, {"rope_theta", 1e6}, {"rope_scaling", {{"type", "default"}}}}),
      expected);
  EXPECT_EQ(normalised({{"model_type", "qwen3"},
                        {"rope_parameters", {{"rope_type", "default"}, {"rope_theta", 1e6}}}}),
            expected);
  EXPECT_EQ(normalised({{"model_type", "qwen3"}})["rope_theta"], 1e4);
}

TEST(ConfigStyle, OldNameOfTheRopeType) {
  EXPECT_EQ(normalised({{"model_type", "qwen2"},
                        {"rope_scaling", {{"type", "yarn"}, {"factor", 4.0}}}})["rope_scaling"],
            (json{{"rope_type", "yarn"}, {"factor", 4.0}}));
  EXPECT_EQ(normalised({{"model_type", "qwen2"},
                        {"rope_scaling",
                         {{"type", "yarn"}, {"rope_type", "yarn"}, {"factor", 4.0}}}})["rope_scaling"],
            (json{{"rope_type", "yarn"}, {"factor", 4.0}}));
}

TEST(ConfigStyle, RopeParametersOfEachKindOfLayer) {
  const json config =
      normalised({{"model_type", "gemma3_text"},
                  {"_sliding_window_pattern", 6},
                  {"rope_parameters",
                   {{"full_attention", {{"rope_type", "linear"}, {"factor", 8.0}, {"rope_theta", 2e6}}},
                    {"sliding_attention", {{"rope_type", "default"}, {"rope_theta", 3e4}}}}}});
  EXPECT_EQ(config["rope_theta"], 2e6);
  EXPECT_EQ(config["rope_local_base_freq"], 3e4);
  EXPECT_EQ(config["rope_scaling"], (json{{"rope_type", "linear"}, {"factor", 8.0}}));
  EXPECT_EQ(config["sliding_window_pattern"], 6);
  EXPECT_FALSE(config.contains("rope_parameters"));
}

TEST(ConfigStyle, MultimodalModelsAreTheirTextModel) {
  // As Gemma 3 4B publishes itself.
  const json config = normalised({{"model_type", "gemma3"},
                                  {"eos_token_id", {1, 106}},
                                  {"torch_dtype", "bfloat16"},
                                  {"vision_config", {{"hidden_size", 1152}}},
                                  {"text_config",
                                   {{"model_type", "gemma3_text"},
                                    {"hidden_size", 2560},
                                    {"intermediate_size", 10240},
                                    {"num_hidden_layers", 34},
                                    {"rope_scaling", {{"factor", 8.0}, {"rope_type", "linear"}}},
                                    {"sliding_window", 1024}}}});
  const json expected = {{"model_type", "gemma3_text"},
                         {"eos_token_id", {1, 106}},
                         {"torch_dtype", "bfloat16"},
                         {"hidden_size", 2560},
                         {"intermediate_size", 10240},
                         {"num_hidden_layers", 34},
                         {"rope_scaling", {{"factor", 8.0}, {"rope_type", "linear"}}},
                         {"sliding_window", 1024},
                         {"vocab_size", 262208},
                         {"num_attention_heads", 8},
                         {"num_key_value_heads", 4},
                         {"head_dim", 256},
                         {"hidden_activation", "gelu_pytorch_tanh"},
                         {"max_position_embeddings", 131072},
                         {"rms_norm_eps", 1e-6},
                         {"rope_theta", 1e6},
                         {"rope_local_base_freq", 1e4},
                         {"query_pre_attn_scalar", 256},
                         {"sliding_window_pattern", 6},
                         {"tie_word_embeddings", true}};
  EXPECT_EQ(config, expected);
  EXPECT_EQ(normalised({{"model_type", "gemma3"}, {"text_config", {{"hidden_size", 1}}}})["model_type"],
            "gemma3_text");
}

TEST(ConfigStyle, ExpertsAndWindows) {
  EXPECT_EQ(normalised({{"model_type", "qwen3_moe"}, {"num_local_experts", 16}})["num_experts"], 16);
  EXPECT_FALSE(normalised({{"model_type", "qwen2"}, {"use_sliding_window", false}, {"sliding_window", 4096}})
                   .contains("sliding_window"));
  EXPECT_EQ(normalised({{"model_type", "mistral"}, {"sliding_window", 4096}})["sliding_window"], 4096);
}

TEST(ConfigStyle, RefusesContradictionsAndWrongKinds) {
  EXPECT_EQ(refusal(json::array()), "config.json: expected an object");
  EXPECT_EQ(refusal(json::object()), "config.json: model_type: missing or not a string");
  EXPECT_EQ(refusal({{"model_type", 1}}), "config.json: model_type: missing or not a string");
  EXPECT_EQ(refusal({{"model_type", "x"}, {"text_config", 1}}),
            "config.json: text_config: expected an object");
  EXPECT_EQ(refusal({{"model_type", "x"}, {"rope_scaling", "linear"}}),
            "config.json: rope_scaling: expected an object or null");
  EXPECT_EQ(refusal({{"model_type", "x"}, {"rope_scaling", {{"factor", 2}}}}),
            "config.json: rope_scaling: rope_type is missing");
  EXPECT_EQ(refusal({{"model_type", "x"}, {"rope_scaling", {{"type", "a"}, {"rope_type", "b"}}}}),
            "config.json: rope_scaling: type is \"a\", but rope_type is \"b\"");
  EXPECT_EQ(refusal({{"model_type", "x"}, {"rope_parameters", 1}}),
            "config.json: rope_parameters: expected an object");
  EXPECT_EQ(refusal({{"model_type", "x"}, {"rope_theta", 1}, {"rope_parameters", {{"rope_theta", 2}}}}),
            "config.json: rope_theta is 1, but rope_parameters say 2");
  EXPECT_EQ(refusal({{"model_type", "x"},
                     {"rope_parameters", {{"full_attention", json::object()}, {"other", json::object()}}}}),
            "config.json: rope_parameters: layer type \"other\" is not known (known: full_attention, "
            "sliding_attention)");
  EXPECT_EQ(
      refusal({{"model_type", "x"},
               {"rope_parameters",
                {{"full_attention", json::object()}, {"sliding_attention", {{"rope_type", "linear"}}}}}}),
      "config.json: rope_parameters: scaled sliding_attention layers are not supported");
  EXPECT_EQ(refusal({{"model_type", "x"}, {"num_experts", 2}, {"num_local_experts", 3}}),
            "config.json: num_local_experts is 3, but num_experts is 2");
}

}  // namespace
}  // namespace eider
