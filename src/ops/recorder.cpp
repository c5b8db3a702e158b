#include "ops/recorder.h"

#include <fmt/format.h>

#include "base/check.h"

namespace eider {

int Recorder::kv_kind(KvKind kind) {
  EIDER_CHECK(plan_.kv_kinds.size() < 4);
  plan_.kv_kinds.push_back(std::move(kind));
  return static_cast<int>(plan_.kv_kinds.size()) - 1;
}

KvSlot Recorder::kv_slot(int kind) {
  return {kind, plan_.kv_kinds[static_cast<std::size_t>(kind)].layers++};
}

Recorder::Var Recorder::new_value(std::string_view what, std::int64_t width, Rows rows, ValueType type) {
  plan_.values.push_back({"", width, rows, type});
  return name({static_cast<int>(plan_.values.size()) - 1}, what);
}

Recorder::Var Recorder::name(Var value, std::string_view what) {
  std::string& stored = plan_.values[static_cast<std::size_t>(value.index)].name;
  stored = layer_ < 0 ? std::string(what) : fmt::format("{}.{}", what, layer_);
  return value;
}

void Recorder::append(std::string_view op_name, OpBody body) {
  plan_.ops.push_back({std::string(op_name), layer_, std::move(body)});
}

Recorder::Var Recorder::embed(const TensorView& table, float scale) {
  const Var out = new_value("embed", table.columns(), Rows::kTokens);
  append("embed", EmbedOp{table, scale, out});
  return out;
}

Recorder::Var Recorder::rms_norm(Var in, const TensorView& weight, float eps, std::int64_t groups) {
  const Value source = at(in);
  EIDER_CHECK_EQ(weight.shape.elements() * groups, source.width);
  const Var out = new_value("rms_norm", source.width, source.rows);
  append("rms_norm", RmsNormOp{in, weight, eps, groups, out});
  return out;
}

std::vector<Recorder::Var> Recorder::linear_all(Var in, std::vector<Linear> projections) {
  const Value source = at(in);
  LinearOp op{in, {}};
  std::vector<Var> outs;
  for (Linear& projection : projections) {
    EIDER_CHECK_EQ(projection.weight.columns(), source.width);
    const Var out = new_value("linear", projection.weight.rows(), source.rows);
    if (projection.bias) EIDER_CHECK_EQ(projection.bias->shape.elements(), projection.weight.rows());
    op.projections.push_back({std::move(projection.weight), std::move(projection.bias), out});
    outs.push_back(out);
  }
  append("linear", std::move(op));
  return outs;
}

Recorder::Var Recorder::linear(Var in, const Linear& projection) {
  return linear_all(in, {projection})[0];
}

Recorder::Var Recorder::rope_table(const RopeFrequencies& frequencies) {
  const Var out =
      new_value("rope_table", 2 * static_cast<std::int64_t>(frequencies.inv_freq.size()), Rows::kTokens);
  append("rope_table", RopeTableOp{frequencies.inv_freq, frequencies.magnitude, out});
  return out;
}

Recorder::Var Recorder::rope(Var in, Var table, std::int64_t heads) {
  const Value source = at(in);
  EIDER_CHECK(source.width % heads == 0 && at(table).width <= source.width / heads);
  const Var out = new_value("rope", source.width, source.rows);
  append("rope", RopeOp{in, table, heads, out});
  return out;
}

void Recorder::store_kv(Var keys, Var values, KvSlot slot) {
  const KvKind& kind = plan_.kv_kinds[static_cast<std::size_t>(slot.kind)];
  EIDER_CHECK_EQ(at(keys).width, kind.num_key_value_heads * kind.head_dim);
  EIDER_CHECK_EQ(at(values).width, kind.num_key_value_heads * kind.head_dim);
  append("store_kv", StoreKvOp{keys, values, slot});
}

Recorder::Var Recorder::attention(Var query, KvSlot slot, std::int64_t num_attention_heads, float scale,
                                  float softcap) {
  const Value source = at(query);
  const KvKind& kind = plan_.kv_kinds[static_cast<std::size_t>(slot.kind)];
  EIDER_CHECK_EQ(source.width, num_attention_heads * kind.head_dim);
  EIDER_CHECK_EQ(num_attention_heads % kind.num_key_value_heads, 0);
  const Var out = new_value("attention", source.width, source.rows);
  append("attention", AttentionOp{query, slot, num_attention_heads, scale, softcap, out});
  return out;
}

Recorder::Var Recorder::add(Var a, Var b) {
  const Value source = at(a);
  EIDER_CHECK(source.width == at(b).width && source.rows == at(b).rows);
  const Var out = new_value("add", source.width, source.rows);
  append("add", AddOp{a, b, out});
  return out;
}

Recorder::Var Recorder::gated_activation(Activation activation, Var gate, Var up) {
  const Value source = at(gate);
  EIDER_CHECK(source.width == at(up).width && source.rows == at(up).rows);
  const Var out = new_value("gated_activation", source.width, source.rows);
  append("gated_activation", GatedActivationOp{activation, gate, up, out});
  return out;
}

std::pair<Recorder::Var, Recorder::Var> Recorder::moe_route(Var scores, std::int64_t top_k, bool normalize) {
  EIDER_CHECK(top_k >= 1 && top_k <= at(scores).width);
  const Var experts = new_value("router_idx", top_k, Rows::kTokens, ValueType::kInt32);
  const Var weights = new_value("router_weight", top_k, Rows::kTokens);
  append("moe_route", MoeRouteOp{scores, top_k, normalize, experts, weights});
  return {experts, weights};
}

Recorder::Var Recorder::moe_ffn(Var in, std::pair<Var, Var> route, Activation activation,
                                std::vector<MoeFfnOp::Expert> experts) {
  const std::int64_t width = at(in).width;
  for (const auto& expert : experts) {
    EIDER_CHECK(expert.gate.columns() == width && expert.up.columns() == width &&
                expert.down.rows() == width);
    EIDER_CHECK(expert.gate.rows() == expert.down.columns() && expert.up.rows() == expert.down.columns());
  }
  const Var out = new_value("moe_ffn", width, Rows::kTokens);
  append("moe_ffn", MoeFfnOp{in, route.first, route.second, activation, std::move(experts), out});
  return out;
}

Recorder::Var Recorder::select_rows(Var in) {
  const Var out = new_value("select_rows", at(in).width, Rows::kLogits);
  append("select_rows", SelectRowsOp{in, out});
  return out;
}

Recorder::Var Recorder::soft_cap(Var in, float cap) {
  const Value source = at(in);
  const Var out = new_value("soft_cap", source.width, source.rows);
  append("soft_cap", SoftCapOp{in, cap, out});
  return out;
}

Plan Recorder::finish(Var logits) && {
  EIDER_CHECK(at(logits).rows == Rows::kLogits);
  plan_.logits = logits;
  plan_.vocab_size = at(logits).width;
  return std::move(plan_);
}

}  // namespace eider
