#include "bench/model_work.h"

#include <algorithm>

#include "format/storage_format.h"

namespace eider::bench {
namespace {

void add_product(Work& work, const TensorView& weight, double tokens) {
  const double operations = 2.0 * static_cast<double>(weight.shape.elements()) * tokens;
  const bool is_float = visit_format(weight.format, []<class F>() { return is_float_rule(F::kProduct); });
  (is_float ? work.fp32_ops : work.int8_ops) += operations;
}

}  // namespace

double decode_bytes(const Plan& plan, KvType kv_type, double positions) {
  auto bytes = static_cast<double>(bytes_per_token(plan));
  for (const KvKind& kind : plan.kv_kinds) {
    const double visible =
        kind.window > 0 ? std::min(positions, static_cast<double>(kind.window)) : positions;
    bytes += static_cast<double>(kv_block_bytes(kind, kv_type)) / kKvBlockPositions * visible;
  }
  return bytes;
}

Work prefill_work(const Plan& plan, std::int64_t tokens) {
  Work work;
  double top_k = 0;
  for (const Op& op : plan.ops) {
    if (const auto* linear = std::get_if<LinearOp>(&op.body)) {
      const bool every_token = plan.value(linear->in).rows == Rows::kTokens;
      for (const auto& projection : linear->projections)
        add_product(work, projection.weight, every_token ? static_cast<double>(tokens) : 1);
    } else if (const auto* route = std::get_if<MoeRouteOp>(&op.body)) {
      top_k = static_cast<double>(route->top_k);
    } else if (const auto* moe = std::get_if<MoeFfnOp>(&op.body)) {
      const double share = top_k / static_cast<double>(moe->all_experts.size());
      for (const TensorView* weight : weights_of(op))
        add_product(work, *weight, share * static_cast<double>(tokens));
    }
  }
  return work;
}

}  // namespace eider::bench
