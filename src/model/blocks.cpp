#include "model/blocks.h"

#include <fmt/format.h>

#include <algorithm>

namespace eider {

std::vector<KvSlot> declare_kv(Recorder& recorder, const DecoderConfig& config,
                               const std::vector<std::int64_t>& windows) {
  std::vector<std::pair<std::int64_t, int>> kind_of_window;
  std::vector<KvSlot> slots;
  for (const std::int64_t window : windows) {
    auto known = std::ranges::find(kind_of_window, window, &std::pair<std::int64_t, int>::first);
    if (known == kind_of_window.end()) {
      const int kind = recorder.kv_kind({.name = window == 0 ? "full" : fmt::format("sliding {}", window),
                                         .num_key_value_heads = config.num_key_value_heads,
                                         .head_dim = config.head_dim,
                                         .window = window});
      known = kind_of_window.insert(known, {window, kind});
    }
    slots.push_back(recorder.kv_slot(known->second));
  }
  return slots;
}

Result<TensorView> WeightReader::matrix(std::string_view name, std::int64_t rows,
                                        std::int64_t columns) const {
  return checkpoint_.get(fmt::format("{}{}.weight", prefix_, name), Shape{rows, columns});
}

Result<TensorView> WeightReader::vector(std::string_view name, std::int64_t size) const {
  return checkpoint_.get(fmt::format("{}{}.weight", prefix_, name), Shape{size});
}

Result<Recorder::Linear> WeightReader::linear(std::string_view name, std::int64_t rows, std::int64_t columns,
                                              Bias bias) const {
  Recorder::Linear linear;
  EIDER_TRY(linear.weight, matrix(name, rows, columns));
  const std::string bias_name = fmt::format("{}{}.bias", prefix_, name);
  if (bias == Bias::kRequired) {
    EIDER_TRY(linear.bias, checkpoint_.get(bias_name, Shape{rows}));
  } else if (bias == Bias::kOptional) {
    EIDER_TRY(linear.bias, checkpoint_.get_optional(bias_name, Shape{rows}));
  } else if (checkpoint_.find(bias_name) != nullptr) {
    return error("{}: tensor {}: this architecture has no such bias", checkpoint_.path(), bias_name);
  }
  return linear;
}

WeightReader WeightReader::within(std::string_view name) const {
  return {checkpoint_, fmt::format("{}{}.", prefix_, name)};
}

WeightReader layer_weights(const Checkpoint& checkpoint, std::int64_t layer) {
  return {checkpoint, fmt::format("model.layers.{}.", layer)};
}

Result<AttentionWeights> read_attention(const WeightReader& layer, const DecoderConfig& config,
                                        const AttentionTraits& traits) {
  const WeightReader attention = layer.within("self_attn");
  const std::int64_t q_width = config.num_attention_heads * config.head_dim;
  const std::int64_t kv_width = config.num_key_value_heads * config.head_dim;
  AttentionWeights w;
  EIDER_TRY(w.q_proj, attention.linear("q_proj", q_width, config.hidden_size, traits.qkv_bias));
  EIDER_TRY(w.k_proj, attention.linear("k_proj", kv_width, config.hidden_size, traits.qkv_bias));
  EIDER_TRY(w.v_proj, attention.linear("v_proj", kv_width, config.hidden_size, traits.qkv_bias));
  EIDER_TRY(w.o_proj, attention.linear("o_proj", config.hidden_size, q_width, traits.o_bias));
  if (traits.qk_norm) {
    EIDER_TRY(w.q_norm, attention.vector("q_norm", config.head_dim));
    EIDER_TRY(w.k_norm, attention.vector("k_norm", config.head_dim));
  }
  return w;
}

ValueId gqa_attention(Recorder& r, ValueId x, const AttentionWeights& w, const DecoderConfig& config,
                      ValueId rope, KvSlot slot, float scale, float softcap) {
  auto [q, k, v] = r.linear<3>(x, {w.q_proj, w.k_proj, w.v_proj});
  if (w.q_norm) q = r.rms_norm(q, *w.q_norm, config.rms_norm_eps, config.num_attention_heads);
  if (w.k_norm) k = r.rms_norm(k, *w.k_norm, config.rms_norm_eps, config.num_key_value_heads);
  q = r.rope(q, rope, config.num_attention_heads);
  k = r.rope(k, rope, config.num_key_value_heads);
  r.store_kv(k, v, slot);
  const ValueId attended = r.attention(q, slot, config.num_attention_heads, scale, softcap);
  return r.name(r.linear(attended, w.o_proj), "attn_out");
}

Result<FfnWeights> read_ffn(const WeightReader& layer, std::int64_t hidden_size,
                            std::int64_t intermediate_size) {
  const WeightReader mlp = layer.within("mlp");
  FfnWeights w;
  EIDER_TRY(w.gate_proj, mlp.linear("gate_proj", intermediate_size, hidden_size));
  EIDER_TRY(w.up_proj, mlp.linear("up_proj", intermediate_size, hidden_size));
  EIDER_TRY(w.down_proj, mlp.linear("down_proj", hidden_size, intermediate_size));
  return w;
}

ValueId gated_ffn(Recorder& r, ValueId x, const FfnWeights& w, Activation activation) {
  const auto [gate, up] = r.linear<2>(x, {w.gate_proj, w.up_proj});
  return r.name(r.linear(r.gated_activation(activation, gate, up), w.down_proj), "mlp_out");
}

Result<EndWeights> read_ends(const Checkpoint& checkpoint, const DecoderConfig& config) {
  const WeightReader root(checkpoint, "");
  EndWeights w;
  EIDER_TRY(w.embed_tokens, root.matrix("model.embed_tokens", config.vocab_size, config.hidden_size));
  EIDER_TRY(w.norm, root.vector("model.norm", config.hidden_size));
  w.lm_head = w.embed_tokens;
  if (!config.tie_word_embeddings) {
    EIDER_TRY(w.lm_head, root.matrix("lm_head", config.vocab_size, config.hidden_size));
  }
  w.norm_every_row = checkpoint.pooling().pooling != Pooling::kLast;
  return w;
}

ValueId output_head(Recorder& r, ValueId x, const EndWeights& w, float rms_norm_eps, float softcap) {
  r.set_layer(-1);
  const auto norm = [&](ValueId rows) {
    return r.name(r.rms_norm(rows, w.norm, rms_norm_eps), "final_norm");
  };
  // A row's norm has the same bits before its selection and after it.
  const ValueId normed = w.norm_every_row ? r.select_rows(norm(x)) : norm(r.select_rows(x));
  ValueId logits = r.linear(normed, {w.lm_head, std::nullopt});
  if (softcap != 0) logits = r.soft_cap(logits, softcap);
  return r.name(logits, "logits");
}

Model make_model(const DecoderConfig& config, Plan plan) {
  Model model;
  model.hidden_size = config.hidden_size;
  model.num_hidden_layers = config.num_hidden_layers;
  model.vocab_size = config.vocab_size;
  model.max_position_embeddings = config.max_position_embeddings;
  model.plan = std::move(plan);
  return model;
}

}  // namespace eider
