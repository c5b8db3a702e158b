// Recorder: the vocabulary a model file writes its forward pass in. Each call appends one operation and
// returns the value it makes; shapes are checked here, so that kernels have no error paths.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ops/plan.h"
#include "ops/rope.h"

namespace eider {

class Recorder {
 public:
  /// A value while recording.
  using Var = ValueId;

  struct Linear {
    TensorView weight;
    std::optional<TensorView> bias;
  };

  /// Declares a kind of KV layers (its `layers` count up as kv_slot() hands places out) and returns its
  /// index.
  int kv_kind(KvKind kind);
  KvSlot kv_slot(int kind);

  /// Operations recorded from here on belong to `layer` (-1: to none); values are named "<what>.<layer>".
  void set_layer(int layer) { layer_ = layer; }
  /// Names a value after what it is in the model, for traces, errors and tests: name(x, "attn_out").
  Var name(Var value, std::string_view what);

  Var embed(const TensorView& table, float scale = 1);
  Var rms_norm(Var in, const TensorView& weight, float eps, std::int64_t groups = 1);
  Var linear(Var in, const Linear& projection);
  /// Several products of one input, as one operation: auto [q, k, v] = r.linear<3>(x, {wq, wk, wv}).
  template <std::size_t N>
  std::array<Var, N> linear(Var in, const std::array<Linear, N>& projections);
  Var rope_table(const RopeFrequencies& frequencies);
  Var rope(Var in, Var table, std::int64_t heads);
  void store_kv(Var keys, Var values, KvSlot slot);
  Var attention(Var query, KvSlot slot, std::int64_t num_attention_heads, float scale, float softcap = 0);
  Var add(Var a, Var b);
  Var gated_activation(Activation activation, Var gate, Var up);
  std::pair<Var, Var> moe_route(Var scores, std::int64_t top_k, bool normalize);
  Var moe_ffn(Var in, std::pair<Var, Var> route, Activation activation,
              std::vector<MoeFfnOp::Expert> experts);
  Var select_rows(Var in);
  Var soft_cap(Var in, float cap);

  /// Ends the recording: `logits` is what the plan yields.
  Plan finish(Var logits) &&;

 private:
  std::vector<Var> linear_all(Var in, std::vector<Linear> projections);
  Var new_value(std::string_view what, std::int64_t width, Rows rows, ValueType type = ValueType::kFloat32);
  void append(std::string_view name, OpBody body);
  const Value& at(Var value) const { return plan_.value(value); }

  Plan plan_;
  int layer_ = -1;
};

template <std::size_t N>
std::array<Recorder::Var, N> Recorder::linear(Var in, const std::array<Linear, N>& projections) {
  const std::vector<Var> all = linear_all(in, {projections.begin(), projections.end()});
  std::array<Var, N> out;
  for (std::size_t i = 0; i < N; ++i) out[i] = all[i];
  return out;
}

}  // namespace eider
