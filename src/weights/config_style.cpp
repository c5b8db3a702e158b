#include "weights/config_style.h"

#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "text/json_text.h"
#include "weights/printable.h"

namespace eider {
namespace {

using nlohmann::json;

void drop_nulls(json& object) {
  for (auto it = object.begin(); it != object.end();) it = it->is_null() ? object.erase(it) : std::next(it);
}

/// Moves a value to the key that published files use. Both at once must agree.
Status rename(json& config, const char* from, const char* to) {
  const auto found = config.find(from);
  if (found == config.end()) return {};
  json value = std::move(*found);
  config.erase(found);
  const auto existing = config.find(to);
  if (existing != config.end() && *existing != value)
    return error("{} is {}, but {} is {}", from, to_json_text(value), to, to_json_text(*existing));
  config[to] = std::move(value);
  return {};
}

/// Multimodal models keep their language model's configuration in text_config.
Status take_text_config(json& config) {
  const auto found = config.find("text_config");
  if (found == config.end()) return {};
  if (!found->is_object()) return error("text_config: expected an object");
  json text = std::move(*found);
  drop_nulls(text);
  if (!text.contains("model_type") && config.contains("model_type") && config["model_type"].is_string())
    text["model_type"] = config["model_type"].get<std::string>() + "_text";
  for (const char* shared : {"tie_word_embeddings", "eos_token_id", "bos_token_id", "torch_dtype", "dtype",
                             "quantization_config"}) {
    if (!text.contains(shared) && config.contains(shared)) text[shared] = config[shared];
  }
  config = std::move(text);
  return {};
}

/// Sets rope_theta (under `theta_key`) and rope_scaling from one object of rope parameters; what is not
/// scaled has no rope_scaling.
Status put_rope(json& config, json rope, const char* theta_key) {
  if (!rope.is_object()) return error("rope_parameters: expected an object");
  for (const char* own : {"rope_theta", "partial_rotary_factor"}) {
    const auto found = rope.find(own);
    if (found == rope.end()) continue;
    const char* key = std::string_view(own) == "rope_theta" ? theta_key : own;
    if (config.contains(key) && config[key] != *found)
      return error("{} is {}, but rope_parameters say {}", key, to_json_text(config[key]),
                   to_json_text(*found));
    config[key] = std::move(*found);
    rope.erase(found);
  }
  config["rope_scaling"] = std::move(rope);
  return {};
}

/// rope_parameters of transformers 5: one object, or (gemma 3) one for each kind of layer.
Status take_rope_parameters(json& config) {
  const auto found = config.find("rope_parameters");
  if (found == config.end()) return {};
  json parameters = std::move(*found);
  config.erase(found);
  if (!parameters.is_object()) return error("rope_parameters: expected an object");
  if (!parameters.contains("full_attention")) return put_rope(config, std::move(parameters), "rope_theta");

  for (const auto& [kind, rope] : parameters.items()) {
    if (kind != "full_attention" && kind != "sliding_attention")
      return error("rope_parameters: layer type {} is not known (known: full_attention, sliding_attention)",
                   printable(kind));
  }
  if (const auto sliding = parameters.find("sliding_attention"); sliding != parameters.end()) {
    EIDER_TRY_STATUS(put_rope(config, *sliding, "rope_local_base_freq"));
    if (config["rope_scaling"].value("rope_type", json("default")) != "default")
      return error("rope_parameters: scaled sliding_attention layers are not supported");
  }
  return put_rope(config, parameters["full_attention"], "rope_theta");
}

/// Leaves rope_scaling with a rope_type (older files say "type"), or absent when nothing is scaled.
Status tidy_rope_scaling(json& config) {
  const auto found = config.find("rope_scaling");
  if (found == config.end()) return {};
  json& scaling = *found;
  if (!scaling.is_object()) return error("rope_scaling: expected an object or null");
  drop_nulls(scaling);
  EIDER_TRY_STATUS(rename(scaling, "type", "rope_type").context("rope_scaling"));
  if (scaling.empty() || scaling.value("rope_type", json()) == "default") {
    config.erase(found);
    return {};
  }
  if (!scaling.contains("rope_type")) return error("rope_scaling: rope_type is missing");
  return {};
}

void fill_in(json& config, const json& defaults) {
  for (const auto& [key, value] : defaults.items()) {
    if (!config.contains(key)) config[key] = value;
  }
}

/// What published files leave unsaid. Gemma 3's larger models publish little more than their sizes; these are
/// the defaults of Gemma3TextConfig.
void fill_in_defaults(json& config) {
  const bool gemma3 = config.value("model_type", json()) == "gemma3_text";
  if (gemma3) {
    fill_in(config, json::object({{"vocab_size", 262208},
                                  {"num_attention_heads", 8},
                                  {"num_key_value_heads", 4},
                                  {"head_dim", 256},
                                  {"hidden_activation", "gelu_pytorch_tanh"},
                                  {"max_position_embeddings", 131072},
                                  {"rms_norm_eps", 1e-6},
                                  {"rope_theta", 1e6},
                                  {"rope_local_base_freq", 1e4},
                                  {"query_pre_attn_scalar", 256},
                                  {"sliding_window", 4096},
                                  {"sliding_window_pattern", 6},
                                  {"tie_word_embeddings", true}}));
  }
  fill_in(config, json::object({{"rope_theta", 1e4}, {"tie_word_embeddings", false}}));
  if (config.contains("num_attention_heads"))
    fill_in(config, json::object({{"num_key_value_heads", config["num_attention_heads"]}}));
}

Status normalise(json& config) {
  if (!config.is_object()) return error("expected an object");
  drop_nulls(config);
  EIDER_TRY_STATUS(take_text_config(config));
  if (!config.contains("model_type") || !config["model_type"].is_string())
    return error("model_type: missing or not a string");
  if (config["model_type"] == "gemma3") config["model_type"] = "gemma3_text";

  EIDER_TRY_STATUS(take_rope_parameters(config));
  EIDER_TRY_STATUS(tidy_rope_scaling(config));
  EIDER_TRY_STATUS(rename(config, "num_local_experts", "num_experts"));
  EIDER_TRY_STATUS(rename(config, "dtype", "torch_dtype"));
  EIDER_TRY_STATUS(rename(config, "_sliding_window_pattern", "sliding_window_pattern"));
  // Qwen names a window and switches it off beside it.
  if (config.value("use_sliding_window", json()) == false) config.erase("sliding_window");
  fill_in_defaults(config);
  return {};
}

}  // namespace

Result<Config> normalise_config(json published, const std::string& origin) {
  EIDER_TRY_STATUS(normalise(published).context(origin));
  return Config(std::move(published), origin);
}

}  // namespace eider
