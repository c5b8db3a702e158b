// Qwen3-MoE (Yang et al. 2025): Qwen3's attention, and in place of the feed-forward block a softmax router
// that picks num_experts_per_tok of num_experts SwiGLU experts for each token.
#include <algorithm>

#include "model/architectures.h"
#include "model/llama.h"

namespace eider {
namespace {

struct Qwen3MoeConfig {
  DecoderConfig decoder;
  RopeFrequencies rope;
  std::vector<std::int64_t> windows;  // of each layer, 0: full
  std::int64_t num_experts;
  std::int64_t num_experts_per_tok;
  std::int64_t moe_intermediate_size;
  bool norm_topk_prob;
  std::vector<bool> layer_is_dense;
};

struct Qwen3MoeWeights {
  struct Layer {
    TensorView input_layernorm, post_attention_layernorm;
    AttentionWeights self_attn;
    std::optional<FfnWeights> mlp;  // dense layers
    Recorder::Linear gate;          // the router
    std::vector<MoeFfnOp::Expert> experts;
  };
  EndWeights ends;
  std::vector<Layer> layers;
};

/// Layers named in mlp_only_layers, and all but every decoder_sparse_step-th, are dense.
Result<std::vector<bool>> read_dense_layers(const Config& config, std::int64_t num_hidden_layers) {
  EIDER_TRY(const std::int64_t step, config.integer_or("decoder_sparse_step", 1));
  if (step < 1) return error("{}: decoder_sparse_step {} must be at least 1", config.origin(), step);
  std::vector<std::int64_t> mlp_only;
  if (config.has("mlp_only_layers")) {
    EIDER_TRY(mlp_only, config.integers("mlp_only_layers"));
  }
  std::vector<bool> dense;
  for (std::int64_t layer = 0; layer < num_hidden_layers; ++layer)
    dense.push_back((layer + 1) % step != 0 || std::ranges::find(mlp_only, layer) != mlp_only.end());
  return dense;
}

Result<Qwen3MoeConfig> read_config(const Checkpoint& checkpoint) {
  const Config& config = checkpoint.config();
  Qwen3MoeConfig c{};
  EIDER_TRY(c.decoder, read_decoder_config(config, "silu"));
  const std::int64_t layers = c.decoder.num_hidden_layers;
  EIDER_TRY(const double rope_theta, config.number_or("rope_theta", 10000.0));
  EIDER_TRY(c.rope, read_rope(checkpoint, c.decoder, rope_theta));
  EIDER_TRY(const std::int64_t first_sliding_layer, qwen_first_sliding_layer(config));
  std::vector<bool> sliding;
  for (std::int64_t layer = 0; layer < layers; ++layer) sliding.push_back(layer >= first_sliding_layer);
  EIDER_TRY(c.windows, read_windows(config, layers, sliding));
  EIDER_TRY(c.num_experts, config.size("num_experts", 65536));
  EIDER_TRY(c.num_experts_per_tok, config.size("num_experts_per_tok", c.num_experts));
  EIDER_TRY(c.moe_intermediate_size, config.size("moe_intermediate_size"));
  EIDER_TRY(c.norm_topk_prob, config.boolean_or("norm_topk_prob", false));
  EIDER_TRY(c.layer_is_dense, read_dense_layers(config, layers));
  return c;
}

Result<std::vector<MoeFfnOp::Expert>> read_experts(const WeightReader& mlp, const Qwen3MoeConfig& c) {
  const std::int64_t hidden = c.decoder.hidden_size, inner = c.moe_intermediate_size;
  std::vector<MoeFfnOp::Expert> experts;
  for (std::int64_t expert = 0; expert < c.num_experts; ++expert) {
    const WeightReader reader = mlp.within(fmt::format("experts.{}", expert));
    MoeFfnOp::Expert& e = experts.emplace_back();
    EIDER_TRY(e.gate, reader.matrix("gate_proj", inner, hidden));
    EIDER_TRY(e.up, reader.matrix("up_proj", inner, hidden));
    EIDER_TRY(e.down, reader.matrix("down_proj", hidden, inner));
  }
  return experts;
}

Result<Qwen3MoeWeights> read_weights(const Checkpoint& checkpoint, const Qwen3MoeConfig& config) {
  const DecoderConfig& c = config.decoder;
  const AttentionTraits traits{.qkv_bias = Bias::kOptional, .o_bias = Bias::kOptional, .qk_norm = true};
  Qwen3MoeWeights w;
  EIDER_TRY(w.ends, read_ends(checkpoint, c));
  for (std::int64_t i = 0; i < c.num_hidden_layers; ++i) {
    const WeightReader reader = layer_weights(checkpoint, i);
    Qwen3MoeWeights::Layer& layer = w.layers.emplace_back();
    EIDER_TRY(layer.input_layernorm, reader.vector("input_layernorm", c.hidden_size));
    EIDER_TRY(layer.post_attention_layernorm, reader.vector("post_attention_layernorm", c.hidden_size));
    EIDER_TRY(layer.self_attn, read_attention(reader, c, traits));
    if (config.layer_is_dense[static_cast<std::size_t>(i)]) {
      EIDER_TRY(layer.mlp, read_ffn(reader, c.hidden_size, c.intermediate_size));
    } else {
      EIDER_TRY(layer.gate, reader.within("mlp").linear("gate", config.num_experts, c.hidden_size));
      EIDER_TRY(layer.experts, read_experts(reader.within("mlp"), config));
    }
  }
  return w;
}

ValueId moe_block(Recorder& r, ValueId x, const Qwen3MoeWeights::Layer& w, const Qwen3MoeConfig& config) {
  const ValueId scores = r.linear(x, w.gate);
  const auto route = r.moe_route(scores, config.num_experts_per_tok, config.norm_topk_prob);
  return r.name(r.moe_ffn(x, route, Activation::kSilu, w.experts), "mlp_out");
}

Plan forward(const Qwen3MoeConfig& config, const Qwen3MoeWeights& weights) {
  const DecoderConfig& c = config.decoder;
  Recorder r;
  const std::vector<KvSlot> kv = declare_kv(r, c, config.windows);
  const float scale = attention_scale(static_cast<double>(c.head_dim));

  ValueId x = r.embed(weights.ends.embed_tokens);
  const ValueId rope = r.rope_table(config.rope);
  for (std::size_t layer = 0; layer < weights.layers.size(); ++layer) {
    const Qwen3MoeWeights::Layer& w = weights.layers[layer];
    r.set_layer(static_cast<int>(layer));
    const ValueId a = r.rms_norm(x, w.input_layernorm, c.rms_norm_eps);
    x = r.add(x, gqa_attention(r, a, w.self_attn, c, rope, kv[layer], scale));
    const ValueId b = r.rms_norm(x, w.post_attention_layernorm, c.rms_norm_eps);
    x = r.name(r.add(x, w.mlp ? gated_ffn(r, b, *w.mlp, Activation::kSilu) : moe_block(r, b, w, config)),
               "layer");
  }
  const ValueId logits = output_head(r, x, weights.ends, c.rms_norm_eps);
  return std::move(r).finish(logits);
}

}  // namespace

Result<Model> load_qwen3_moe(const Checkpoint& checkpoint) {
  EIDER_TRY(const Qwen3MoeConfig config, read_config(checkpoint));
  EIDER_TRY(const Qwen3MoeWeights weights, read_weights(checkpoint, config));
  return make_model(config.decoder, forward(config, weights));
}

}  // namespace eider
