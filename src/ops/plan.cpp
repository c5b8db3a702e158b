#include "ops/plan.h"

#include <fmt/format.h>

#include <algorithm>

namespace eider {
namespace {

template <class... Fs>
struct Overloaded : Fs... {
  using Fs::operator()...;
};
template <class... Fs>
Overloaded(Fs...) -> Overloaded<Fs...>;

std::int64_t row_bytes(const Value& value) {
  return value.width * 4;
}

}  // namespace

std::vector<ValueId> inputs_of(const Op& op) {
  return std::visit(Overloaded{
                        [](const EmbedOp&) { return std::vector<ValueId>{}; },
                        [](const RmsNormOp& o) { return std::vector{o.in}; },
                        [](const LinearOp& o) { return std::vector{o.in}; },
                        [](const RopeTableOp&) { return std::vector<ValueId>{}; },
                        [](const RopeOp& o) {
                          return std::vector{o.in, o.table};
                        },
                        [](const StoreKvOp& o) {
                          return std::vector{o.keys, o.values};
                        },
                        [](const AttentionOp& o) { return std::vector{o.query}; },
                        [](const AddOp& o) {
                          return std::vector{o.a, o.b};
                        },
                        [](const GatedActivationOp& o) {
                          return std::vector{o.gate, o.up};
                        },
                        [](const MoeRouteOp& o) { return std::vector{o.scores}; },
                        [](const MoeFfnOp& o) {
                          return std::vector{o.in, o.experts, o.weights};
                        },
                        [](const SelectRowsOp& o) { return std::vector{o.in}; },
                        [](const SoftCapOp& o) { return std::vector{o.in}; },
                    },
                    op.body);
}

std::vector<ValueId> outputs_of(const Op& op) {
  return std::visit(Overloaded{
                        [](const LinearOp& o) {
                          std::vector<ValueId> out;
                          for (const auto& projection : o.projections) out.push_back(projection.out);
                          return out;
                        },
                        [](const StoreKvOp&) { return std::vector<ValueId>{}; },
                        [](const MoeRouteOp& o) {
                          return std::vector{o.experts, o.weights};
                        },
                        [](const auto& o) { return std::vector{o.out}; },
                    },
                    op.body);
}

std::vector<const TensorView*> weights_of(const Op& op) {
  using Weights = std::vector<const TensorView*>;
  return std::visit(Overloaded{
                        [](const EmbedOp& o) { return Weights{&o.table}; },
                        [](const RmsNormOp& o) { return Weights{&o.weight}; },
                        [](const LinearOp& o) {
                          Weights weights;
                          for (const auto& projection : o.projections) {
                            weights.push_back(&projection.weight);
                            if (projection.bias) weights.push_back(&*projection.bias);
                          }
                          return weights;
                        },
                        [](const MoeFfnOp& o) {
                          Weights weights;
                          for (const auto& expert : o.all_experts)
                            weights.insert(weights.end(), {&expert.gate, &expert.up, &expert.down});
                          return weights;
                        },
                        [](const auto&) { return Weights{}; },
                    },
                    op.body);
}

std::string describe(const Op& op) {
  return op.layer < 0 ? op.name : fmt::format("{}, layer {}", op.name, op.layer);
}

ValueStorage assign_storage(const Plan& plan, std::int64_t max_tokens, std::int64_t max_logit_rows) {
  // A value lives from the operation that writes it to the last one that reads it; the logits outlive the
  // plan. Slots are first fit in recording order: plans repeat a layer many times, so the first layer's slots
  // serve all of them.
  const std::size_t count = plan.values.size();
  std::vector<int> last_use(count, -1);
  const int ops = static_cast<int>(plan.ops.size());
  for (int i = 0; i < ops; ++i) {
    const Op& op = plan.ops[static_cast<std::size_t>(i)];
    for (const ValueId id : inputs_of(op)) last_use[static_cast<std::size_t>(id.index)] = i;
    for (const ValueId id : outputs_of(op)) last_use[static_cast<std::size_t>(id.index)] = i;
  }
  last_use[static_cast<std::size_t>(plan.logits.index)] = ops;

  struct Live {
    std::int64_t begin, end;
    int last_use;
  };
  std::vector<Live> live;  // ascending by begin
  ValueStorage storage{std::vector<std::int64_t>(count, 0), 0};
  for (int i = 0; i < ops; ++i) {
    std::erase_if(live, [&](const Live& slot) { return slot.last_use < i; });
    for (const ValueId id : outputs_of(plan.ops[static_cast<std::size_t>(i)])) {
      const auto index = static_cast<std::size_t>(id.index);
      const std::int64_t rows = plan.value(id).rows == Rows::kTokens ? max_tokens : max_logit_rows;
      const std::int64_t bytes = (rows * row_bytes(plan.value(id)) + 63) / 64 * 64;
      std::int64_t begin = 0;
      auto place = live.begin();
      for (; place != live.end() && place->begin < begin + bytes; ++place)
        begin = std::max(begin, place->end);
      live.insert(place, {begin, begin + bytes, last_use[index]});
      storage.offset[index] = begin;
      storage.bytes = std::max(storage.bytes, begin + bytes);
    }
  }
  return storage;
}

std::int64_t bytes_per_token(const Plan& plan) {
  std::int64_t bytes = 0;
  std::int64_t top_k = 0;
  for (const Op& op : plan.ops) {
    if (const auto* embed = std::get_if<EmbedOp>(&op.body)) {
      bytes += embed->table.row_bytes();
    } else if (const auto* route = std::get_if<MoeRouteOp>(&op.body)) {
      top_k = route->top_k;
    } else if (const auto* moe = std::get_if<MoeFfnOp>(&op.body)) {
      std::int64_t all = 0;
      for (const TensorView* weight : weights_of(op)) all += weight->bytes();
      bytes += all / static_cast<std::int64_t>(moe->all_experts.size()) * top_k;
    } else {
      for (const TensorView* weight : weights_of(op)) bytes += weight->bytes();
    }
  }
  return bytes;
}

}  // namespace eider
