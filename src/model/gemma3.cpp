// Gemma 3, text (Gemma Team 2025): norms before and after both blocks, per-head norms of q and k, five
// sliding-window layers to one global one, each with its own rope base; the embedding is scaled by
// sqrt(hidden_size) and tied to the head. Norm weights arrive as the factor 1 + w (weights/ makes them so).
#include <cmath>

#include "model/architectures.h"
#include "model/blocks.h"

namespace eider {
namespace {

struct Gemma3Config {
  DecoderConfig decoder;
  RopeFrequencies rope_global, rope_local;
  std::vector<std::int64_t> windows;  // of each layer, 0: global
  float attention_scale;              // 1 / sqrt(query_pre_attn_scalar)
  float attn_logit_softcapping;       // 0: none
  float final_logit_softcapping;      // 0: none
};

struct Gemma3Weights {
  struct Layer {
    TensorView input_layernorm, post_attention_layernorm;
    TensorView pre_feedforward_layernorm, post_feedforward_layernorm;
    AttentionWeights self_attn;
    FfnWeights mlp;
  };
  EndWeights ends;
  std::vector<Layer> layers;
};

Result<Gemma3Config> read_config(const Checkpoint& checkpoint) {
  const Config& config = checkpoint.config();
  Gemma3Config c{};
  EIDER_TRY(c.decoder, read_decoder_config(config, "gelu_pytorch_tanh"));
  EIDER_TRY(c.decoder.tie_word_embeddings, config.boolean_or("tie_word_embeddings", true));
  EIDER_TRY(const double theta_global, config.number_or("rope_theta", 1e6));
  EIDER_TRY(const double theta_local, config.number_or("rope_local_base_freq", 1e4));
  EIDER_TRY(c.rope_global, read_rope(checkpoint, c.decoder, theta_global));
  c.rope_local = rope_default(c.decoder.head_dim, theta_local);

  EIDER_TRY(const std::int64_t pattern, config.integer_or("sliding_window_pattern", 6));
  if (pattern < 1) return error("{}: sliding_window_pattern {} must be at least 1", config.origin(), pattern);
  std::vector<bool> sliding;
  for (std::int64_t layer = 0; layer < c.decoder.num_hidden_layers; ++layer)
    sliding.push_back((layer + 1) % pattern != 0);
  EIDER_TRY(c.windows, read_windows(config, c.decoder.num_hidden_layers, sliding));

  EIDER_TRY(const double scalar,
            config.number_or("query_pre_attn_scalar", static_cast<double>(c.decoder.head_dim)));
  if (!(scalar > 0)) return error("{}: query_pre_attn_scalar {} must be positive", config.origin(), scalar);
  c.attention_scale = attention_scale(scalar);
  EIDER_TRY(const double attention_cap, config.number_or("attn_logit_softcapping", 0.0));
  EIDER_TRY(const double final_cap, config.number_or("final_logit_softcapping", 0.0));
  if (attention_cap < 0 || final_cap < 0) return error("{}: a logit soft cap is negative", config.origin());
  c.attn_logit_softcapping = static_cast<float>(attention_cap);
  c.final_logit_softcapping = static_cast<float>(final_cap);
  return c;
}

Result<Gemma3Weights> read_weights(const Checkpoint& checkpoint, const DecoderConfig& c) {
  Gemma3Weights w;
  EIDER_TRY(w.ends, read_ends(checkpoint, c));
  for (std::int64_t i = 0; i < c.num_hidden_layers; ++i) {
    const WeightReader reader = layer_weights(checkpoint, i);
    Gemma3Weights::Layer& layer = w.layers.emplace_back();
    EIDER_TRY(layer.input_layernorm, reader.vector("input_layernorm", c.hidden_size));
    EIDER_TRY(layer.post_attention_layernorm, reader.vector("post_attention_layernorm", c.hidden_size));
    EIDER_TRY(layer.pre_feedforward_layernorm, reader.vector("pre_feedforward_layernorm", c.hidden_size));
    EIDER_TRY(layer.post_feedforward_layernorm, reader.vector("post_feedforward_layernorm", c.hidden_size));
    EIDER_TRY(layer.self_attn, read_attention(reader, c, {.qk_norm = true}));
    EIDER_TRY(layer.mlp, read_ffn(reader, c.hidden_size, c.intermediate_size));
  }
  return w;
}

Plan forward(const Gemma3Config& config, const Gemma3Weights& weights) {
  const DecoderConfig& c = config.decoder;
  Recorder r;
  const std::vector<KvSlot> kv = declare_kv(r, c, config.windows);

  ValueId x = r.embed(weights.ends.embed_tokens, std::sqrt(static_cast<float>(c.hidden_size)));
  const ValueId rope_global = r.rope_table(config.rope_global);
  const ValueId rope_local = r.rope_table(config.rope_local);
  for (std::size_t layer = 0; layer < weights.layers.size(); ++layer) {
    const Gemma3Weights::Layer& w = weights.layers[layer];
    r.set_layer(static_cast<int>(layer));
    const ValueId rope = config.windows[layer] == 0 ? rope_global : rope_local;
    const ValueId a = r.rms_norm(x, w.input_layernorm, c.rms_norm_eps);
    const ValueId attn_out = gqa_attention(r, a, w.self_attn, c, rope, kv[layer], config.attention_scale,
                                           config.attn_logit_softcapping);
    x = r.add(x, r.rms_norm(attn_out, w.post_attention_layernorm, c.rms_norm_eps));
    const ValueId b = r.rms_norm(x, w.pre_feedforward_layernorm, c.rms_norm_eps);
    const ValueId mlp_out = gated_ffn(r, b, w.mlp, Activation::kGeluTanh);
    x = r.name(r.add(x, r.rms_norm(mlp_out, w.post_feedforward_layernorm, c.rms_norm_eps)), "layer");
  }
  const ValueId logits = output_head(r, x, weights.ends, c.rms_norm_eps, config.final_logit_softcapping);
  return std::move(r).finish(logits);
}

}  // namespace

Result<Model> load_gemma3(const Checkpoint& checkpoint) {
  EIDER_TRY(const Gemma3Config config, read_config(checkpoint));
  EIDER_TRY(const Gemma3Weights weights, read_weights(checkpoint, config.decoder));
  return make_model(config.decoder, forward(config, weights));
}

}  // namespace eider
