// Configuration keys that decoders share; blocks.h has the contracts.
#include <cmath>

#include "model/blocks.h"

namespace eider {

Result<DecoderConfig> read_decoder_config(const Config& config, std::string_view hidden_act) {
  DecoderConfig c{};
  EIDER_TRY(c.vocab_size, config.size("vocab_size"));
  EIDER_TRY(c.hidden_size, config.size("hidden_size"));
  EIDER_TRY(c.intermediate_size, config.size("intermediate_size"));
  EIDER_TRY(c.num_hidden_layers, config.size("num_hidden_layers", 4096));
  EIDER_TRY(c.num_attention_heads, config.size("num_attention_heads", 4096));
  c.num_key_value_heads = c.num_attention_heads;
  if (config.has("num_key_value_heads")) {
    EIDER_TRY(c.num_key_value_heads, config.size("num_key_value_heads", 4096));
  }
  if (c.num_attention_heads % c.num_key_value_heads != 0)
    return error("{}: num_attention_heads {} is not a multiple of num_key_value_heads {}", config.origin(),
                 c.num_attention_heads, c.num_key_value_heads);
  if (config.has("head_dim")) {
    EIDER_TRY(c.head_dim, config.size("head_dim", 4096));
  } else {
    if (c.hidden_size % c.num_attention_heads != 0)
      return error("{}: hidden_size {} is not a multiple of num_attention_heads {}, and there is no head_dim",
                   config.origin(), c.hidden_size, c.num_attention_heads);
    c.head_dim = c.hidden_size / c.num_attention_heads;
  }
  if (c.head_dim % 2 != 0) return error("{}: head_dim {} is odd", config.origin(), c.head_dim);
  EIDER_TRY(c.max_position_embeddings, config.size("max_position_embeddings", std::int64_t{1} << 30));
  EIDER_TRY(const double eps, config.number("rms_norm_eps"));
  c.rms_norm_eps = static_cast<float>(eps);
  EIDER_TRY(c.tie_word_embeddings, config.boolean_or("tie_word_embeddings", false));

  const std::string_view key =
      config.has("hidden_activation") ? "hidden_activation" : "hidden_act";  // gemma's spelling
  EIDER_TRY(const std::string activation, config.string_or(key, hidden_act));
  if (activation != hidden_act)
    return error("{}: {} '{}' is not known for this architecture (known: {})", config.origin(), key,
                 activation, hidden_act);
  EIDER_TRY(const double partial, config.number_or("partial_rotary_factor", 1.0));
  if (partial != 1.0)
    return error("{}: partial_rotary_factor {} is not supported for this architecture", config.origin(),
                 partial);
  return c;
}

float attention_scale(double n) {
  return static_cast<float>(1.0 / std::sqrt(n));
}

namespace {

Result<RopeFrequencies> read_rope_scaling(const Config& scaling, const DecoderConfig& config, double theta) {
  EIDER_TRY(const std::string type, scaling.string("rope_type"));
  if (type == "default") return rope_default(config.head_dim, theta);
  EIDER_TRY(const double factor, scaling.number("factor"));
  if (!(factor > 0)) return error("{}: factor {} must be positive", scaling.origin(), factor);
  if (type == "linear") return rope_linear(config.head_dim, theta, factor);

  const auto max_positions = static_cast<double>(config.max_position_embeddings);
  EIDER_TRY(const double original, scaling.number_or("original_max_position_embeddings", max_positions));
  if (!(original > 0))
    return error("{}: original_max_position_embeddings {} must be positive", scaling.origin(), original);
  if (type == "llama3") {
    EIDER_TRY(const double low, scaling.number("low_freq_factor"));
    EIDER_TRY(const double high, scaling.number("high_freq_factor"));
    if (!(low > 0 && high > low))
      return error("{}: low_freq_factor {} and high_freq_factor {} are out of order", scaling.origin(), low,
                   high);
    return rope_divided(config.head_dim, theta,
                        llama3_divisors(config.head_dim, theta, factor, low, high, original));
  }
  if (type == "yarn") {
    YarnParameters yarn{.factor = factor, .original_max_position_embeddings = original};
    EIDER_TRY(yarn.beta_fast, scaling.number_or("beta_fast", yarn.beta_fast));
    EIDER_TRY(yarn.beta_slow, scaling.number_or("beta_slow", yarn.beta_slow));
    EIDER_TRY(yarn.magnitude, scaling.number_or("attention_factor", yarn.magnitude));
    return rope_yarn(config.head_dim, theta, yarn);
  }
  return error("{}: rope_type '{}' is not known (known: default, linear, llama3, yarn)", scaling.origin(),
               type);
}

}  // namespace

Result<RopeFrequencies> read_rope(const Checkpoint& checkpoint, const DecoderConfig& config,
                                  double rope_theta) {
  if (!(rope_theta > 1))
    return error("{}: rope_theta {} must be above 1", checkpoint.config().origin(), rope_theta);
  if (checkpoint.config().has("rope_scaling")) {
    EIDER_TRY(const Config scaling, checkpoint.config().object("rope_scaling"));
    return read_rope_scaling(scaling, config, rope_theta);
  }
  EIDER_TRY(const auto divisors, checkpoint.get_optional("rope_freqs.weight", Shape{config.head_dim / 2}));
  if (!divisors) return rope_default(config.head_dim, rope_theta);
  if (divisors->format != Format::kF32)
    return error("{}: tensor rope_freqs.weight: expected F32", checkpoint.path());
  const auto* values = reinterpret_cast<const float*>(divisors->data);
  return rope_divided(config.head_dim, rope_theta, {values, values + config.head_dim / 2});
}

Result<std::vector<std::int64_t>> read_windows(const Config& config, std::int64_t num_hidden_layers,
                                               const std::vector<bool>& layer_is_sliding) {
  std::vector<bool> sliding = layer_is_sliding;
  if (config.has("layer_types")) {
    EIDER_TRY(const std::vector<std::string> types, config.strings("layer_types"));
    if (static_cast<std::int64_t>(types.size()) != num_hidden_layers)
      return error("{}: layer_types has {} entries for {} layers", config.origin(), types.size(),
                   num_hidden_layers);
    for (std::size_t layer = 0; layer < types.size(); ++layer) {
      if (types[layer] != "full_attention" && types[layer] != "sliding_attention")
        return error("{}: layer_types: '{}' is not known (known: full_attention, sliding_attention)",
                     config.origin(), types[layer]);
      sliding[layer] = types[layer] == "sliding_attention";
    }
  }
  std::vector<std::int64_t> windows(sliding.size(), 0);
  for (std::size_t layer = 0; layer < sliding.size(); ++layer) {
    if (!sliding[layer]) continue;
    EIDER_TRY(windows[layer], config.size("sliding_window", std::int64_t{1} << 30));
  }
  return windows;
}

}  // namespace eider
