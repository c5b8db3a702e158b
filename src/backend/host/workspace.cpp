#include "backend/host/workspace.h"

#include <algorithm>

#include "format/storage_format.h"

namespace eider::host {
namespace {

/// Hands out aligned offsets one after the other.
class Offsets {
 public:
  std::int64_t take(std::int64_t bytes) {
    const std::int64_t offset = end_;
    end_ += (bytes + 63) / 64 * 64;
    return offset;
  }
  std::int64_t end() const { return end_; }

 private:
  std::int64_t end_ = 0;
};

/// Room for the forms of [rows, columns] that products with some weights need.
struct InputRoom {
  OpWorkspace bytes;  // in place of offsets

  void add(Format weight, std::int64_t rows, std::int64_t columns) {
    const ProductRule rule = product_rule(weight);
    if (rule == ProductRule::kFloat) return;
    std::int64_t& room = bytes.input_form(rule);
    room = std::max(room, rule == ProductRule::kScaledFloat ? rows * columns * 4
                                                            : quantized_layout(rule, rows, columns).bytes);
  }
  void place(Offsets& offsets, OpWorkspace& workspace) const {
    workspace.quantized_32 = offsets.take(bytes.quantized_32);
    workspace.quantized_256 = offsets.take(bytes.quantized_256);
    workspace.scaled = offsets.take(bytes.scaled);
  }
};

/// Floats that hold a weight's opened tile.
std::int64_t opened_floats(const TensorView& weight, const Kernels& kernels) {
  return kernels.packing == nullptr ? 0 : kernels.packing->opened_bytes(weight.format, weight.columns()) / 4;
}

OpWorkspace linear_workspace(const Plan& plan, const LinearOp& op, const CompileOptions& options,
                             const Kernels& kernels) {
  const Value& in = plan.value(op.in);
  InputRoom inputs;
  OpWorkspace workspace;
  for (const auto& projection : op.projections) {
    inputs.add(projection.weight.format, most_rows(in, options), in.width);
    workspace.opened_floats = std::max(workspace.opened_floats, opened_floats(projection.weight, kernels));
  }
  Offsets offsets;
  inputs.place(offsets, workspace);
  workspace.shared_bytes = offsets.end();
  workspace.thread_floats = workspace.opened_floats;
  return workspace;
}

OpWorkspace moe_workspace(const Plan& plan, const MoeFfnOp& op, const CompileOptions& options,
                          const Kernels& kernels) {
  const std::int64_t intermediate = op.all_experts.front().down.columns();
  const std::int64_t picks = options.max_tokens * plan.value(op.experts).width;
  // The input's form is no longer needed when that of the down product's input is made.
  InputRoom inputs;
  OpWorkspace workspace;
  const std::int64_t width = plan.value(op.in).width;
  std::int64_t gathered_floats = 0;
  for (const auto& expert : op.all_experts) {
    for (const Format format : {expert.gate.format, expert.up.format}) {
      inputs.add(format, picks, width);
      if (product_rule(format) == ProductRule::kFloat) gathered_floats = picks * width;
    }
    inputs.add(expert.down.format, picks, intermediate);
    for (const TensorView* weight : {&expert.gate, &expert.up, &expert.down})
      workspace.opened_floats = std::max(workspace.opened_floats, opened_floats(*weight, kernels));
  }
  const std::int64_t groups = moe_down_groups(op.all_experts.front().down.format, intermediate);
  Offsets offsets;
  inputs.place(offsets, workspace);
  workspace.gathered = offsets.take(gathered_floats * 4);
  workspace.gate = offsets.take(picks * intermediate * 4);
  workspace.up = offsets.take(picks * intermediate * 4);
  workspace.gated = offsets.take(picks * intermediate * 4);
  workspace.picks = offsets.take((2 * static_cast<std::int64_t>(op.all_experts.size()) + 2 + 2 * picks) * 4);
  workspace.shared_bytes = offsets.end();
  workspace.thread_floats = workspace.opened_floats + groups * moe_down_tokens(groups) * kRowTile;
  return workspace;
}

OpWorkspace attention_workspace(const Plan& plan, const AttentionOp& op, const CompileOptions& options,
                                const Kernels& kernels) {
  const KvKind& kind = plan.kv_kinds[static_cast<std::size_t>(op.slot.kind)];
  OpWorkspace workspace;
  if (kernels.attention_merge != nullptr)
    workspace.shared_bytes =
        split_blocks(kind, options) * op.num_attention_heads * block_row_floats(kind.head_dim) * 4;
  workspace.thread_floats =
      attention_scratch(kind.head_dim, op.num_attention_heads / kind.num_key_value_heads);
  return workspace;
}

/// The vectors of an operation that are kept as floats.
std::int64_t vector_floats(const Op& op) {
  if (const auto* norm = std::get_if<RmsNormOp>(&op.body)) return norm->weight.shape.elements();
  std::int64_t floats = 0;
  if (const auto* linear = std::get_if<LinearOp>(&op.body))
    for (const auto& projection : linear->projections)
      if (projection.bias) floats += projection.bias->shape.elements();
  return floats;
}

}  // namespace

ProductRule product_rule(Format format) {
  return visit_format(format, []<class F>() {
    return F::kProduct == ProductRule::kInteger32Halves ? ProductRule::kInteger32 : F::kProduct;
  });
}

std::int64_t unit_columns(ProductRule rule) {
  return rule == ProductRule::kInteger256 ? 256 : 32;
}

QuantizedLayout quantized_layout(ProductRule rule, std::int64_t rows, std::int64_t columns) {
  if (is_float_rule(rule)) return {};
  const std::int64_t units = columns / unit_columns(rule);
  const auto of_units = [&](std::int64_t count, std::size_t size) {
    return rows * units * count * static_cast<std::int64_t>(size);
  };
  const bool super = rule == ProductRule::kInteger256;
  Offsets offsets;
  QuantizedLayout layout;
  layout.codes = offsets.take(of_units(unit_columns(rule), sizeof(std::int8_t)));
  layout.scales = offsets.take(of_units(1, sizeof(float)));
  layout.corrections = offsets.take(of_units(super ? kCorrections256 : 2, sizeof(std::int32_t)));
  layout.sums = offsets.take(of_units(super ? kSums256 : 0, sizeof(std::int16_t)));
  layout.unit_sums = offsets.take(of_units(super ? 0 : 1, sizeof(float)));
  layout.bytes = offsets.end();
  return layout;
}

std::int64_t split_blocks(const KvKind& kind, const CompileOptions& options) {
  std::int64_t blocks = (options.max_positions + kKvBlockPositions - 1) / kKvBlockPositions;
  if (kind.window > 0)
    blocks = std::min(blocks, (kind.window + 2 * kKvBlockPositions - 2) / kKvBlockPositions);
  constexpr std::int64_t kTokens = 4;
  return blocks * std::min(options.max_tokens, kTokens);
}

std::int64_t units_per_group(Format format, std::int64_t moe_intermediate_size) {
  return moe_intermediate_size <= 1024 || product_rule(format) == ProductRule::kInteger256 ? 1 : 2;
}

std::int64_t moe_down_groups(Format format, std::int64_t moe_intermediate_size) {
  const std::int64_t columns =
      unit_columns(product_rule(format)) * units_per_group(format, moe_intermediate_size);
  return (moe_intermediate_size + columns - 1) / columns;
}

std::int64_t most_rows(const Value& value, const CompileOptions& options) {
  return value.rows == Rows::kTokens ? options.max_tokens : options.max_logit_rows;
}

OpWorkspace op_workspace(const Plan& plan, const Op& op, const CompileOptions& options,
                         const Kernels& kernels) {
  if (const auto* linear = std::get_if<LinearOp>(&op.body))
    return linear_workspace(plan, *linear, options, kernels);
  if (const auto* moe = std::get_if<MoeFfnOp>(&op.body)) return moe_workspace(plan, *moe, options, kernels);
  if (const auto* attention = std::get_if<AttentionOp>(&op.body))
    return attention_workspace(plan, *attention, options, kernels);
  return {};
}

std::int64_t MemoryNeeds::bytes(int threads) const {
  return values.bytes + shared_bytes + (threads * thread_floats + vector_floats) * 4;
}

MemoryNeeds memory_needs(const Plan& plan, const CompileOptions& options, const Kernels& kernels) {
  MemoryNeeds needs;
  needs.values = assign_storage(plan, options.max_tokens, options.max_logit_rows);
  for (const Op& op : plan.ops) {
    const OpWorkspace workspace = op_workspace(plan, op, options, kernels);
    needs.shared_bytes = std::max(needs.shared_bytes, workspace.shared_bytes);
    needs.thread_floats = std::max(needs.thread_floats, (workspace.thread_floats + 15) / 16 * 16);
    needs.vector_floats += vector_floats(op);
  }
  return needs;
}

}  // namespace eider::host
