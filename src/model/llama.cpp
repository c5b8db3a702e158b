// Llama 2 and 3.x (Touvron et al. 2023; Grattafiori et al. 2024), SmolLM2, Mistral: pre-norm decoder,
// grouped-query attention, SwiGLU. llama3 rope scaling comes with the configuration, or as divisors in a GGUF
// file; Mistral 7B v0.1 has a sliding window in every layer.
#include "model/llama.h"

#include "model/architectures.h"

namespace eider {
namespace {

struct LlamaConfig {
  DecoderConfig decoder;
  RopeFrequencies rope;
  std::vector<std::int64_t> windows;  // of each layer, 0: full
};

struct LlamaWeights {
  struct Layer {
    TensorView input_layernorm, post_attention_layernorm;
    AttentionWeights self_attn;
    FfnWeights mlp;
  };
  EndWeights ends;
  std::vector<Layer> layers;
};

Result<LlamaConfig> read_config(const Checkpoint& checkpoint, const LlamaTraits& traits) {
  const Config& config = checkpoint.config();
  LlamaConfig c;
  EIDER_TRY(c.decoder, read_decoder_config(config, "silu"));
  EIDER_TRY(const double rope_theta, config.number_or("rope_theta", 10000.0));
  EIDER_TRY(c.rope, read_rope(checkpoint, c.decoder, rope_theta));
  const std::int64_t layers = c.decoder.num_hidden_layers;
  std::vector<bool> sliding;
  for (std::int64_t layer = 0; layer < layers; ++layer)
    sliding.push_back(layer >= traits.first_sliding_layer);
  EIDER_TRY(c.windows, read_windows(config, layers, sliding));
  return c;
}

Result<LlamaWeights> read_weights(const Checkpoint& checkpoint, const DecoderConfig& c,
                                  const AttentionTraits& attention) {
  LlamaWeights w;
  EIDER_TRY(w.ends, read_ends(checkpoint, c));
  for (std::int64_t i = 0; i < c.num_hidden_layers; ++i) {
    const WeightReader reader = layer_weights(checkpoint, i);
    LlamaWeights::Layer& layer = w.layers.emplace_back();
    EIDER_TRY(layer.input_layernorm, reader.vector("input_layernorm", c.hidden_size));
    EIDER_TRY(layer.post_attention_layernorm, reader.vector("post_attention_layernorm", c.hidden_size));
    EIDER_TRY(layer.self_attn, read_attention(reader, c, attention));
    EIDER_TRY(layer.mlp, read_ffn(reader, c.hidden_size, c.intermediate_size));
  }
  return w;
}

Plan forward(const LlamaConfig& config, const LlamaWeights& weights) {
  const DecoderConfig& c = config.decoder;
  Recorder r;
  const std::vector<KvSlot> kv = declare_kv(r, c, config.windows);
  const float scale = attention_scale(static_cast<double>(c.head_dim));

  ValueId x = r.embed(weights.ends.embed_tokens);
  const ValueId rope = r.rope_table(config.rope);
  for (std::size_t layer = 0; layer < weights.layers.size(); ++layer) {
    const LlamaWeights::Layer& w = weights.layers[layer];
    r.set_layer(static_cast<int>(layer));
    const ValueId a = r.rms_norm(x, w.input_layernorm, c.rms_norm_eps);
    x = r.add(x, gqa_attention(r, a, w.self_attn, c, rope, kv[layer], scale));
    const ValueId b = r.rms_norm(x, w.post_attention_layernorm, c.rms_norm_eps);
    x = r.name(r.add(x, gated_ffn(r, b, w.mlp, Activation::kSilu)), "layer");
  }
  const ValueId logits = output_head(r, x, weights.ends, c.rms_norm_eps);
  return std::move(r).finish(logits);
}

}  // namespace

Result<Model> load_llama_like(const Checkpoint& checkpoint, const LlamaTraits& traits) {
  EIDER_TRY(const LlamaConfig config, read_config(checkpoint, traits));
  EIDER_TRY(const LlamaWeights weights, read_weights(checkpoint, config.decoder, traits.attention));
  return make_model(config.decoder, forward(config, weights));
}

Result<Model> load_llama(const Checkpoint& checkpoint) {
  const Config& config = checkpoint.config();
  LlamaTraits traits{.attention = {.qkv_bias = Bias::kOptional, .o_bias = Bias::kOptional}};
  if (config.has("sliding_window")) traits.first_sliding_layer = 0;
  return load_llama_like(checkpoint, traits);
}

}  // namespace eider
