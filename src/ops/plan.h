// Plan: a forward pass as data. A model records it once (recorder.h); a backend compiles and runs it. A plan
// is a straight list of typed operations over named values; there are no rewriting passes, so what a model
// asks for is what runs. Semantics and the order of every addition: docs/NUMERICS.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "ops/kv_layout.h"
#include "tensor/tensor_view.h"

namespace eider {

/// A value of the plan: index into Plan::values.
struct ValueId {
  int index = -1;
  bool operator==(const ValueId&) const = default;
};

/// How many rows a value has in a step: one a token, or one a row whose logits are wanted.
enum class Rows : std::uint8_t { kTokens, kLogits };
enum class ValueType : std::uint8_t { kFloat32, kInt32 };

/// [rows, width], row-major, written by one operation. Names follow the layer: "attn_out.3".
struct Value {
  std::string name;
  std::int64_t width = 0;
  Rows rows = Rows::kTokens;
  ValueType type = ValueType::kFloat32;
};

/// out[token] = row token_id of `table` dequantised, times `scale`.
struct EmbedOp {
  TensorView table;  // [vocab_size, hidden_size]
  float scale = 1;
  ValueId out;
};

/// Each row is `groups` vectors of width / groups elements; each is normalised by itself: (x * r) * weight.
struct RmsNormOp {
  ValueId in;
  TensorView weight;  // [width / groups]
  float eps = 0;
  std::int64_t groups = 1;
  ValueId out;
};

/// Products that share an input, and so its quantisation: out = in * weight^T (+ bias).
struct LinearOp {
  struct Projection {
    TensorView weight;               // [out width, in width]
    std::optional<TensorView> bias;  // [out width]
    ValueId out;
  };
  ValueId in;
  std::vector<Projection> projections;
};

/// Cosines and sines for the positions of the step: out[token] = {cos_0 .. cos_{n-1}, sin_0 .. sin_{n-1}}, n
/// = inv_freq.size(), angle_i = double(position) * inv_freq[i]; cos and sin times `magnitude` in double, then
/// rounded.
struct RopeTableOp {
  std::vector<double> inv_freq;
  double magnitude = 1;
  ValueId out;
};

/// Rotates pairs (j, j + n) of the first 2n dimensions of each head; the rest is copied.
struct RopeOp {
  ValueId in;
  ValueId table;
  std::int64_t heads = 0;
  ValueId out;
};

/// Appends keys and values of the step's rows to their sequences' blocks.
struct StoreKvOp {
  ValueId keys, values;  // [tokens, num_key_value_heads * head_dim]
  KvSlot slot;
};

/// Causal attention over the stored positions, window as the slot's kind has it. Query head h reads KV head
/// h / (num_attention_heads / num_key_value_heads).
struct AttentionOp {
  ValueId query;  // [tokens, num_attention_heads * head_dim]
  KvSlot slot;
  std::int64_t num_attention_heads = 0;
  float scale = 0;
  float softcap = 0;  // 0: none
  ValueId out;
};

struct AddOp {
  ValueId a, b, out;
};

enum class Activation : std::uint8_t { kSilu, kGeluTanh };

/// out = act(gate) * up
struct GatedActivationOp {
  Activation activation = Activation::kSilu;
  ValueId gate, up, out;
};

/// Softmax router: the top_k experts of a row by (score descending, index ascending), listed in ascending
/// index, and their weights; `normalize`: over the picks, else over all experts.
struct MoeRouteOp {
  ValueId scores;  // [tokens, experts]
  std::int64_t top_k = 0;
  bool normalize = true;
  ValueId experts;  // [tokens, top_k] int32
  ValueId weights;  // [tokens, top_k]
};

/// Sum over the picked experts of weight * down(act(gate(x)) * up(x)), in the group order of
/// docs/NUMERICS.md.
struct MoeFfnOp {
  struct Expert {
    TensorView gate, up;  // [moe_intermediate_size, hidden_size]
    TensorView down;      // [hidden_size, moe_intermediate_size]
  };
  ValueId in;
  ValueId experts, weights;  // of MoeRouteOp
  Activation activation = Activation::kSilu;
  std::vector<Expert> all_experts;
  ValueId out;
};

/// The rows whose logits are wanted: out[i] = in[logit_rows[i]].
struct SelectRowsOp {
  ValueId in, out;
};

/// out = cap * tanh(in / cap)
struct SoftCapOp {
  ValueId in;
  float cap = 0;
  ValueId out;
};

using OpBody = std::variant<EmbedOp, RmsNormOp, LinearOp, RopeTableOp, RopeOp, StoreKvOp, AttentionOp, AddOp,
                            GatedActivationOp, MoeRouteOp, MoeFfnOp, SelectRowsOp, SoftCapOp>;

struct Op {
  std::string name;  // "rms_norm", "linear", ...
  int layer = -1;    // -1: before or after the layers
  OpBody body;
};

struct Plan {
  std::vector<Value> values;
  std::vector<Op> ops;
  std::vector<KvKind> kv_kinds;
  ValueId logits;  // [logit rows, vocab_size]
  std::int64_t vocab_size = 0;

  const Value& value(ValueId id) const { return values[static_cast<std::size_t>(id.index)]; }
};

/// The values an operation reads, and those it writes.
std::vector<ValueId> inputs_of(const Op& op);
std::vector<ValueId> outputs_of(const Op& op);
/// The weights an operation reads.
std::vector<const TensorView*> weights_of(const Op& op);

/// "rms_norm, layer 3": for errors.
std::string describe(const Op& op);

/// Where each value lies in one block of memory: values whose lifetimes do not meet share it.
struct ValueStorage {
  std::vector<std::int64_t> offset;  // bytes, a multiple of 64, by value index
  std::int64_t bytes = 0;
};
ValueStorage assign_storage(const Plan& plan, std::int64_t max_tokens, std::int64_t max_logit_rows);

/// Bytes of weights that one decoded token reads (a routed expert counts top_k times, an embedding row once).
std::int64_t bytes_per_token(const Plan& plan);

}  // namespace eider
