// The phases of a mixture of experts: the router; then sort the picks by expert, gate and up, activation,
// down.
#include <cstring>
#include <map>
#include <memory>

#include "backend/host/phase.h"

namespace eider::host {

/// ExpertPicks in the making, in memory of the workspace.
struct PickTable {
  std::int32_t* count;   // of experts that were picked
  std::int32_t* chosen;  // [experts]: those, ascending
  std::int32_t* begin;   // [experts + 1]
  std::int32_t* tokens;  // [tokens * top_k]
  float* weights;        // [tokens * top_k]
  std::int64_t experts;
  std::int64_t top_k;

  ExpertPicks view() const { return {*count, chosen, begin, tokens, weights}; }

  /// Counting sort of the router's picks [tokens, top_k]; an expert's end up in ascending token.
  void sort(const std::int32_t* picks, const float* pick_weights, std::int64_t token_count) const {
    for (std::int64_t expert = 0; expert <= experts; ++expert) begin[expert] = 0;
    for (std::int64_t pick = 0; pick < token_count * top_k; ++pick) ++begin[picks[pick] + 1];
    for (std::int64_t expert = 0; expert < experts; ++expert) begin[expert + 1] += begin[expert];
    for (std::int64_t pick = 0; pick < token_count * top_k; ++pick) {
      const std::int32_t place = begin[picks[pick]]++;
      tokens[place] = static_cast<std::int32_t>(pick / top_k);
      weights[place] = pick_weights[pick];
    }
    // Each begin has moved to its expert's end, which is where the next one begins.
    std::int32_t used = 0, first = 0;
    for (std::int32_t expert = 0; expert < experts; ++expert) {
      const std::int32_t end = begin[expert];
      if (end == first) continue;
      chosen[used] = expert;
      begin[used++] = first;
      first = end;
    }
    begin[used] = first;
    *count = used;
  }
};

namespace {

/// The first product of one expert: gate or up.
struct ExpertProduct {
  InputForm in;
  Matrix weight;
  Kernels::Function<ProductArgs> kernel;
  float* out;
};

/// Gate and up of each expert in turn. Items are units of work, so that shares are even whatever the experts'
/// numbers of picks: of each tile of an expert's rows, one a pick and some for reading the weights.
struct ExpertProducts {
  PickTable table;
  std::vector<ExpertProduct> products;
  std::int64_t tiles;  // of each

  static constexpr std::int64_t kReading = 6;

  std::int64_t items() const {
    const std::int32_t experts = *table.count;
    return 2 * tiles * (table.begin[experts] + experts * kReading);
  }
  void run(const StepState& state, Items items, std::byte* opened) const {
    const ExpertPicks picks = table.view();
    std::int64_t at = 0;
    for (std::int64_t i = 0; i < 2 * picks.count && at < items.end; ++i) {
      const std::int64_t place = picks.begin[i / 2];
      const std::int64_t count = picks.begin[i / 2 + 1] - place;
      const std::int64_t work = count + kReading;  // of a tile
      const Items part = part_of(items, at, tiles * work);
      at += tiles * work;
      if (part.begin >= part.end) continue;
      const ExpertProduct& product = products[static_cast<std::size_t>(2 * picks.chosen[i / 2] + i % 2)];
      product.kernel({product.in.at(state), is_gathered(state) ? place : 0, count, product.weight, nullptr,
                      opened, product.out + place * product.weight.rows},
                     // A tile is done by the thread whose piece has its first item.
                     {(part.begin + work - 1) / work, (part.end + work - 1) / work});
    }
  }

  /// The input's rows are copied into the order of places; a single one is left alone.
  static bool is_gathered(const StepState& state) { return state.tokens() > 1; }
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
    if (expert.down.format != first_down.format || expert.down.shape != first_down.shape ||
        !has_same_blocks(expert.down.scales, first_down.scales))
      return error("tensors {} and {} differ in format, shape or scales; a layer's experts must be alike",
                   first_down.name, expert.down.name);

  const PickTable table = sort_picks(op);
  multiply_gate_up(op, table);
  const std::int64_t intermediate = first_down.columns();
  kernel_over_rows(Rows::kTokens, table.top_k * intermediate, 1,
                   op.activation == Activation::kSilu ? kernels_.gated_silu : kernels_.gated_gelu_tanh,
                   ElementwiseArgs{shared_floats(workspace_.gate), shared_floats(workspace_.up),
                                   shared_floats(workspace_.gated)});
  multiply_down(op, table);
  return {};
}

PickTable PhaseBuilder::sort_picks(const MoeFfnOp& op) {
  const auto experts = static_cast<std::int64_t>(op.all_experts.size());
  const std::int64_t top_k = plan_.value(op.experts).width;
  auto* count = reinterpret_cast<std::int32_t*>(memory_.shared.data() + workspace_.picks);
  auto* chosen = count + 1;
  auto* begin = chosen + experts;
  auto* tokens = begin + experts + 1;
  auto* weights = reinterpret_cast<float*>(tokens + options_.max_tokens * top_k);
  const PickTable table{count, chosen, begin, tokens, weights, experts, top_k};
  phases_.push_back({[](const StepState&) { return 1; }, 1,
                     [=, picks = reinterpret_cast<const std::int32_t*>(memory_.value(op.experts)),
                      pick_weights = memory_.value(op.weights)](const StepState& state, Items, int) {
                       table.sort(picks, pick_weights, state.tokens());
                     }});
  return table;
}

void PhaseBuilder::multiply_gate_up(const MoeFfnOp& op, const PickTable& table) {
  const std::int64_t width = plan_.value(op.in).width;
  const auto gathered_rows = [top_k = table.top_k](const StepState& state) {
    return ExpertProducts::is_gathered(state) ? state.tokens() * top_k : 1;
  };
  std::map<ProductRule, InputForm> forms;  // each rule's form of the input is made once
  const auto form_of = [&](const TensorView& weight) -> const InputForm& {
    const ProductRule rule = product_rule(weight.format);
    if (const auto found = forms.find(rule); found != forms.end()) return found->second;
    const float* in = memory_.value(op.in);
    float* gathered = shared_floats(workspace_.gathered);
    if (rule == ProductRule::kFloat)
      phases_.push_back(
          {gathered_rows, grain_of(width), [=, tokens = table.tokens](const StepState&, Items rows, int) {
             for (std::int64_t row = rows.begin; row < rows.end; ++row)
               std::memcpy(gathered + row * width, in + tokens[row] * width,
                           static_cast<std::size_t>(width) * sizeof(float));
           }});
    const InputForm form = input_form(rule, rule == ProductRule::kFloat ? gathered : in, gathered_rows,
                                      options_.max_tokens * table.top_k, width);
    quantize(form, table.tokens);
    return forms.emplace(rule, form).first->second;
  };

  const auto products = std::make_shared<ExpertProducts>();
  products->table = table;
  products->tiles = row_tiles(op.all_experts.front().gate.rows());
  for (const auto& expert : op.all_experts)
    for (const auto& [weight, offset] :
         {std::pair{&expert.gate, workspace_.gate}, {&expert.up, workspace_.up}}) {
      const InputForm& form = form_of(*weight);
      products->products.push_back({form, weights_.matrix(*weight),
                                    kernels_.product[static_cast<std::size_t>(weight->format)],
                                    shared_floats(offset)});
    }
  phases_.push_back(
      {[products](const StepState&) { return products->items(); }, 1,
       [products, &memory = memory_](const StepState& state, Items items, int thread) {
         products->run(state, items, memory.opened(thread));
       },
       true, ExpertProducts::kReading * tiles_of_piece(kRowTile * op.all_experts.front().gate.row_bytes())});
}

void PhaseBuilder::multiply_down(const MoeFfnOp& op, const PickTable& table) {
  const TensorView& first = op.all_experts.front().down;
  const std::int64_t intermediate = first.columns();
  const InputForm hidden = input_form(
      product_rule(first.format), shared_floats(workspace_.gated),
      [top_k = table.top_k](const StepState& state) { return state.tokens() * top_k; },
      options_.max_tokens * table.top_k, intermediate);
  quantize(hidden);
  std::vector<Matrix> downs;
  for (const auto& expert : op.all_experts) downs.push_back(weights_.matrix(expert.down));
  over_tiles(row_tiles(first.rows()), table.top_k * kRowTile * first.row_bytes(),
             [=, &memory = memory_, downs = std::move(downs), out = memory_.value(op.out),
              group = units_per_group(first.format, intermediate),
              tile_tokens = moe_down_tokens(moe_down_groups(first.format, intermediate)),
              opened_floats = workspace_.opened_floats,
              kernel = kernels_.moe_down[static_cast<std::size_t>(first.format)]](const StepState& state,
                                                                                  Items items, int thread) {
               kernel({hidden.at(state), table.view(), downs.data(), state.tokens(), group, tile_tokens,
                       memory.opened(thread), memory.scratch(thread) + opened_floats, out},
                      items);
             });
}

}  // namespace eider::host
