// What the decoders of this folder have in common: reading their configuration and weights, and the blocks
// their forward passes are written in.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "model/model.h"
#include "ops/recorder.h"
#include "weights/checkpoint.h"

namespace eider {

/// Keys that every decoder here has, under their published names.
struct DecoderConfig {
  std::int64_t vocab_size;
  std::int64_t hidden_size;
  std::int64_t intermediate_size;
  std::int64_t num_hidden_layers;
  std::int64_t num_attention_heads;
  std::int64_t num_key_value_heads;
  std::int64_t head_dim;
  std::int64_t max_position_embeddings;
  float rms_norm_eps;
  bool tie_word_embeddings;
};

/// Refuses sizes out of range, heads that do not divide, partial rotary embeddings, and any activation but
/// `hidden_act`.
Result<DecoderConfig> read_decoder_config(const Config& config, std::string_view hidden_act);

/// fp32(1 / sqrt(n)), the attention scale for head dimension (or query_pre_attn_scalar) n.
float attention_scale(double n);

/// Frequencies for rope_theta and rope_scaling (none, default, linear, llama3, yarn), or for the divisors
/// that a GGUF file carries as rope_freqs.weight. Any other rope_type is an error.
Result<RopeFrequencies> read_rope(const Checkpoint& checkpoint, const DecoderConfig& config,
                                  double rope_theta);

/// Sliding window of each layer, 0 for full attention: by layer_types where the config has them, else by
/// `layer_is_sliding`.
Result<std::vector<std::int64_t>> read_windows(const Config& config, std::int64_t num_hidden_layers,
                                               const std::vector<bool>& layer_is_sliding);

/// A place for the keys and values of each layer, layers of one window sharing a kind.
std::vector<KvSlot> declare_kv(Recorder& recorder, const DecoderConfig& config,
                               const std::vector<std::int64_t>& windows);

enum class Bias { kNone, kOptional, kRequired };

/// Finds weights under a prefix such as "model.layers.3." and checks their shapes.
class WeightReader {
 public:
  WeightReader(const Checkpoint& checkpoint, std::string prefix)
      : checkpoint_(checkpoint), prefix_(std::move(prefix)) {}

  Result<TensorView> matrix(std::string_view name, std::int64_t rows, std::int64_t columns) const;
  Result<TensorView> vector(std::string_view name, std::int64_t size) const;
  Result<Recorder::Linear> linear(std::string_view name, std::int64_t rows, std::int64_t columns,
                                  Bias bias = Bias::kNone) const;
  WeightReader within(std::string_view name) const;

 private:
  const Checkpoint& checkpoint_;
  std::string prefix_;
};

WeightReader layer_weights(const Checkpoint& checkpoint, std::int64_t layer);

// Grouped-query attention.

struct AttentionWeights {
  Recorder::Linear q_proj, k_proj, v_proj, o_proj;
  std::optional<TensorView> q_norm, k_norm;  // [head_dim]
};
struct AttentionTraits {
  Bias qkv_bias = Bias::kNone;
  Bias o_bias = Bias::kNone;
  bool qk_norm = false;
};
Result<AttentionWeights> read_attention(const WeightReader& layer, const DecoderConfig& config,
                                        const AttentionTraits& traits);

/// q, k, v = x W; per-head norms of q and k where the model has them; rope; append; attend; project.
ValueId gqa_attention(Recorder& r, ValueId x, const AttentionWeights& w, const DecoderConfig& config,
                      ValueId rope, KvSlot slot, float scale, float softcap = 0);

// Feed-forward.

struct FfnWeights {
  Recorder::Linear gate_proj, up_proj, down_proj;
};
Result<FfnWeights> read_ffn(const WeightReader& layer, std::int64_t hidden_size,
                            std::int64_t intermediate_size);

/// down(act(gate(x)) * up(x))
ValueId gated_ffn(Recorder& r, ValueId x, const FfnWeights& w, Activation activation);

// Ends.

struct EndWeights {
  TensorView embed_tokens, norm, lm_head;  // lm_head is embed_tokens where they are tied
  bool norm_every_row = false;             // embeddings pool the states of all tokens
};
Result<EndWeights> read_ends(const Checkpoint& checkpoint, const DecoderConfig& config);

/// logits = lm_head(rms(x)) for the rows that want them, soft-capped where `softcap` is not 0. The value
/// "final_norm" is rms(x) of those rows, or of every row where EndWeights says so.
ValueId output_head(Recorder& r, ValueId x, const EndWeights& w, float rms_norm_eps, float softcap = 0);

/// A Model but for what load_model() adds.
Model make_model(const DecoderConfig& config, Plan plan);

}  // namespace eider
