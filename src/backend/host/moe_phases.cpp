// The phases of a mixture of experts: the router; then sort the picks by expert, gate and up, activation,
// down.
#include "backend/host/phase.h"

namespace eider::host {
namespace {

/// The picks of a step by expert, in memory of the workspace.
struct PickTable {
  std::int32_t* begin;   // [experts + 1]
  std::int32_t* picks;   // [tokens * top_k]
  std::int32_t* tokens;  // [tokens * top_k]
  std::int64_t experts;
  std::int64_t top_k;

  ExpertPicks view() const { return {begin, picks, tokens, experts}; }
  std::int64_t count(std::int64_t expert) const { return begin[expert + 1] - begin[expert]; }

  /// Counting sort of chosen [tokens, top_k]; an expert's picks end up in ascending token.
  void sort(const std::int32_t* chosen, std::int64_t token_count) const {
    for (std::int64_t expert = 0; expert <= experts; ++expert) begin[expert] = 0;
    for (std::int64_t pick = 0; pick < token_count * top_k; ++pick) ++begin[chosen[pick] + 1];
    for (std::int64_t expert = 0; expert < experts; ++expert) begin[expert + 1] += begin[expert];
    for (std::int64_t pick = 0; pick < token_count * top_k; ++pick) {
      const std::int32_t place = begin[chosen[pick]]++;
      picks[place] = static_cast<std::int32_t>(pick);
      tokens[place] = static_cast<std::int32_t>(pick / top_k);
    }
    // Each begin has moved to its expert's end, which is the next one's begin.
    for (std::int64_t expert = experts; expert > 0; --expert) begin[expert] = begin[expert - 1];
    begin[0] = 0;
  }
};

/// The first product of one expert: gate or up.
struct ExpertProduct {
  InputForm in;
  Matrix weight;
  Kernels::Function<ProductArgs> kernel;
  float* out;
};

}  // namespace

Status PhaseBuilder::lower(const MoeRouteOp& op) {
  const MoeRouteArgs args{memory_.value(op.scores),
                          plan_.value(op.scores).width,
                          op.top_k,
                          op.normalize,
                          reinterpret_cast<std::int32_t*>(memory_.value(op.experts)),
                          memory_.value(op.weights)};
  kernel_over_rows(Rows::kTokens, 1, args.experts, kernels_.moe_route, args);
  return {};
}

Status PhaseBuilder::lower(const MoeFfnOp& op) {
  const TensorView& first_down = op.all_experts.front().down;
  for (const auto& expert : op.all_experts)
    if (expert.down.format != first_down.format || expert.down.shape != first_down.shape)
      return error("tensors {} and {} differ in format or shape; a layer's experts must be alike",
                   first_down.name, expert.down.name);

  const std::int64_t intermediate = first_down.columns();
  const auto shared_floats = [&](std::int64_t offset) {
    return reinterpret_cast<float*>(memory_.shared.data() + offset);
  };
  auto* ints = reinterpret_cast<std::int32_t*>(memory_.shared.data() + workspace_.picks);
  const auto experts = static_cast<std::int64_t>(op.all_experts.size());
  const std::int64_t top_k = plan_.value(op.experts).width;
  const PickTable table{ints, ints + experts + 1, ints + experts + 1 + options_.max_tokens * top_k, experts,
                        top_k};

  over_items(1, [=, chosen = reinterpret_cast<const std::int32_t*>(memory_.value(op.experts))](
                    const StepState& state, Items, int) { table.sort(chosen, state.tokens()); });
  const auto input = [&](const TensorView& weight) {
    return input_form(product_rule(weight.format), memory_.value(op.in), Rows::kTokens, 1,
                      plan_.value(op.in).width);
  };
  bool quantized[2] = {};  // by 32 and by 256 columns
  std::vector<ExpertProduct> products;
  for (const auto& expert : op.all_experts)
    for (const auto& [weight, offset] :
         {std::pair{&expert.gate, workspace_.gate}, {&expert.up, workspace_.up}}) {
      const InputForm in = input(*weight);
      bool& done = quantized[in.rule == ProductRule::kInteger256];
      if (!done) quantize(in);
      done = done || in.rule != ProductRule::kFloat;
      const Matrix matrix = weights_.add(*weight);
      products.push_back(
          {in, matrix, kernels_.product[static_cast<std::size_t>(weight->format)], shared_floats(offset)});
    }
  // Items are units of work, so that shares are even whatever the experts' numbers of picks: of each tile of
  // an expert's rows, one a pick and some for reading the weights.
  constexpr std::int64_t kReading = 6;
  const auto work = [=](std::int64_t expert) {
    const std::int64_t count = table.count(expert);
    return count == 0 ? 0 : count + kReading;
  };
  phases_.push_back({[=](const StepState&) {
                       std::int64_t items = 0;
                       for (std::int64_t expert = 0; expert < experts; ++expert)
                         items += work(expert) * 2 * row_tiles(intermediate);
                       return items;
                     },
                     1,
                     [=, &memory = memory_, products = std::move(products)](const StepState& state,
                                                                            Items items, int thread) {
                       std::int64_t at = 0;
                       for (std::size_t i = 0; i < products.size(); ++i) {
                         const auto expert = static_cast<std::int64_t>(i / 2);
                         const std::int64_t tile_work = work(expert);
                         if (tile_work == 0) continue;
                         // A tile is done by the thread whose share has its first item.
                         const Items part = part_of(items, at, row_tiles(intermediate) * tile_work);
                         const Items tiles = {(part.begin + tile_work - 1) / tile_work,
                                              (part.end + tile_work - 1) / tile_work};
                         at += row_tiles(intermediate) * tile_work;
                         if (part.begin >= part.end) continue;
                         const ExpertProduct& product = products[i];
                         const std::int32_t begin = table.begin[expert];
                         product.kernel({product.in.at(state), table.tokens + begin, table.picks + begin,
                                         table.count(expert), product.weight, nullptr, memory.opened(thread),
                                         product.out},
                                        tiles);
                       }
                     },
                     true});

  float* gated = shared_floats(workspace_.gated);
  kernel_over_rows(Rows::kTokens, top_k * intermediate, 1,
                   op.activation == Activation::kSilu ? kernels_.gated_silu : kernels_.gated_gelu_tanh,
                   ElementwiseArgs{shared_floats(workspace_.gate), shared_floats(workspace_.up), gated});

  const InputForm hidden =
      input_form(product_rule(first_down.format), gated, Rows::kTokens, top_k, intermediate);
  quantize(hidden);
  std::vector<Matrix> downs;
  for (const auto& expert : op.all_experts) {
    downs.push_back(weights_.add(expert.down));
  }
  over_items(row_tiles(first_down.rows()),
             [=, &memory = memory_, downs = std::move(downs), weights = memory_.value(op.weights),
              out = memory_.value(op.out), group = units_per_group(first_down.format, intermediate),
              tile_tokens = moe_down_tokens(moe_down_groups(first_down.format, intermediate)),
              opened_floats = workspace_.opened_floats,
              kernel = kernels_.moe_down[static_cast<std::size_t>(first_down.format)]](
                 const StepState& state, Items items, int thread) {
               kernel({hidden.at(state), table.view(), downs.data(), weights, state.tokens(), group,
                       tile_tokens, memory.opened(thread), memory.scratch(thread) + opened_floats, out},
                      items);
             });
  return {};
}

}  // namespace eider::host
