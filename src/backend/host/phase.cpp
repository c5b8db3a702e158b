#include "backend/host/phase.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "base/check.h"
#include "format/storage_format.h"
#include "ops/double_math.h"

namespace eider::host {
namespace {

KvRows kv_rows(const StepState& state, KvSlot slot, const KvBlockLayout& layout) {
  return {
      state.positions.data(), state.sequence.data(), state.sequences.data(), state.tokens(), slot, layout};
}

/// How the attention of a step is shared out: tiles of tokens for each KV head, or single blocks of each run
/// of a sequence's tokens.
struct AttentionShares {
  std::int64_t kv_heads, window;
  int threads;
  std::int64_t most_blocks;  // that a split step has room for

  /// Tokens of a tile: fewer where the step is so small that threads would be without items.
  std::int64_t tile_tokens(std::int64_t tokens) const {
    std::int64_t tile = kQueryTile;
    while (tile > 1 && kv_heads * ((tokens + tile - 1) / tile) < 2 * threads) tile /= 2;
    return tile;
  }
  std::int64_t tiles(std::int64_t tokens) const {
    const std::int64_t tile = tile_tokens(tokens);
    return (tokens + tile - 1) / tile;
  }
  /// Blocks that the tokens of the step see, one after the other.
  std::int64_t blocks(const StepState& state) const {
    std::int64_t count = 0;
    for (const std::int32_t position : state.positions) {
      const Items visible = visible_blocks(position, window);
      count += visible.end - visible.begin;
    }
    return count;
  }
  /// Blocks that the runs in tokens [begin, end) see.
  std::int64_t run_blocks(const StepState& state, std::int64_t begin, std::int64_t end) const {
    std::int64_t count = 0;
    while (begin < end) {
      const std::int64_t next = run_end(state.sequence.data(), begin, end);
      const Items seen = run_visible_blocks(state.positions.data(), begin, next, window);
      count += seen.end - seen.begin;
      begin = next;
    }
    return count;
  }
  std::int64_t run_blocks(const StepState& state) const { return run_blocks(state, 0, state.tokens()); }

  /// Whether blocks share out so much better that it is worth another barrier: where tiles are few and of
  /// unequal work, or cut runs that would read their blocks together.
  bool split(const StepState& state) const {
    if (state.tokens() > kQueryTile) return false;
    const std::int64_t count = blocks(state);
    if (count == state.tokens() || count > most_blocks) return false;
    const std::int64_t tile = tile_tokens(state.tokens());
    std::int64_t read = 0, greatest = 0;
    for (std::int64_t begin = 0; begin < state.tokens(); begin += tile) {
      const std::int64_t seen = run_blocks(state, begin, std::min(begin + tile, state.tokens()));
      read += seen;
      greatest = std::max(greatest, seen);
    }
    const std::int64_t items = kv_heads * tiles(state.tokens());
    const bool even = items % threads == 0 && greatest * tiles(state.tokens()) == read;
    const std::int64_t wait = even ? 0 : greatest * (threads - 1);
    return 4 * (kv_heads * read + wait) > 5 * kv_heads * run_blocks(state);
  }
};

}  // namespace

std::int64_t row_count(Rows rows, const StepState& state) {
  return rows == Rows::kTokens ? state.tokens() : static_cast<std::int64_t>(state.logit_rows.size());
}

Items part_of(Items items, std::int64_t at, std::int64_t count) {
  return {std::max(items.begin, at) - at, std::min(items.end, at + count) - at};
}

Result<Memory> Memory::allocate(const MemoryNeeds& needs, int threads) {
  const auto floats = [](std::int64_t count) {
    return Buffer::allocate(static_cast<std::size_t>(count) * 4);
  };
  EIDER_TRY(Buffer values, Buffer::allocate(static_cast<std::size_t>(needs.values.bytes)));
  EIDER_TRY(Buffer shared, Buffer::allocate(static_cast<std::size_t>(needs.shared_bytes)));
  EIDER_TRY(Buffer scratch, floats(threads * needs.thread_floats));
  EIDER_TRY(Buffer vectors, floats(needs.vector_floats));
  return Memory{std::move(values),  needs.values.offset, std::move(shared),
                std::move(scratch), needs.thread_floats, std::move(vectors)};
}

ProductInput InputForm::at(const StepState& state) const {
  const bool scaled = rule == ProductRule::kScaledFloat;
  return {scaled ? reinterpret_cast<const float*>(quantized) : values,
          {reinterpret_cast<std::int8_t*>(quantized + layout.codes),
           reinterpret_cast<float*>(quantized + layout.scales),
           reinterpret_cast<std::int32_t*>(quantized + layout.corrections),
           reinterpret_cast<std::int16_t*>(quantized + layout.sums),
           reinterpret_cast<float*>(quantized + layout.unit_sums), rows(state)}};
}

InputForm PhaseBuilder::input_form(ProductRule rule, const float* values,
                                   std::function<std::int64_t(const StepState&)> rows, std::int64_t most_rows,
                                   std::int64_t columns) {
  return {rule,
          values,
          std::move(rows),
          columns,
          memory_.shared.data() + workspace_.input_form(rule),
          quantized_layout(rule, most_rows, columns)};
}

void PhaseBuilder::quantize(const InputForm& in, const std::int32_t* input_rows) {
  if (in.rule == ProductRule::kFloat) return;
  if (in.rule == ProductRule::kScaledFloat) {
    phases_.push_back(
        {in.rows, grain_of(in.columns),
         [=, kernel = kernels_.scale_input](const StepState&, Items rows, int) {
           kernel({in.values, input_rows, in.columns, reinterpret_cast<float*>(in.quantized)}, rows);
         }});
    return;
  }
  const auto kernel = in.rule == ProductRule::kInteger256 ? kernels_.quantize_256 : kernels_.quantize_32;
  const std::int64_t units = in.columns / unit_columns(in.rule);
  phases_.push_back({[=](const StepState& state) { return in.rows(state) * units; },
                     grain_of(unit_columns(in.rule)),
                     [=](const StepState& state, Items items, int) {
                       kernel({in.values, input_rows, in.columns, in.at(state).quantized}, items);
                     }});
}

const float* PhaseBuilder::as_floats(const TensorView& vector) {
  float* floats = reinterpret_cast<float*>(memory_.vectors.data()) + vectors_used_;
  decode_row(vector.format, vector.data, vector.shape.elements(), floats);
  vectors_used_ += vector.shape.elements();
  return floats;
}

Result<std::vector<Phase>> PhaseBuilder::build(const Op& op) {
  workspace_ = op_workspace(plan_, op, options_, kernels_);
  phases_.clear();
  EIDER_TRY_STATUS(std::visit([&](const auto& body) { return lower(body); }, op.body).context(describe(op)));
  return std::move(phases_);
}

Status PhaseBuilder::lower(const EmbedOp& op) {
  over_rows(Rows::kTokens, 1, op.table.columns(),
            [&op, out = memory_.value(op.out)](const StepState& state, Items tokens, int) {
              const std::int64_t width = op.table.columns();
              for (std::int64_t token = tokens.begin; token < tokens.end; ++token) {
                float* row = out + token * width;
                op.table.decode_row(state.token_ids[static_cast<std::size_t>(token)], row);
                for (std::int64_t i = 0; i < width; ++i) row[i] *= op.scale;
              }
            });
  return {};
}

Status PhaseBuilder::lower(const RmsNormOp& op) {
  const Value& in = plan_.value(op.in);
  const RmsNormArgs args{memory_.value(op.in), as_floats(op.weight), op.eps, in.width / op.groups,
                         memory_.value(op.out)};
  kernel_over_rows(in.rows, op.groups, args.width, kernels_.rms_norm, args);
  return {};
}

Status PhaseBuilder::lower(const LinearOp& op) {
  struct Projection {
    Matrix weight;
    const float* bias;
    float* out;
    InputForm in;
    Kernels::Function<ProductArgs> kernel;
  };
  const Value& in = plan_.value(op.in);
  const auto rows = [sort = in.rows](const StepState& state) { return row_count(sort, state); };
  const auto forms = [&](ProductRule rule) {
    return input_form(rule, memory_.value(op.in), rows, most_rows(in, options_), in.width);
  };
  const auto used = [&](ProductRule rule) {
    return std::ranges::any_of(op.projections,
                               [&](const auto& p) { return product_rule(p.weight.format) == rule; });
  };
  for (ProductRule rule : {ProductRule::kScaledFloat, ProductRule::kInteger32, ProductRule::kInteger256})
    if (used(rule)) quantize(forms(rule));

  std::vector<Projection> projections;
  std::int64_t tiles = 0;
  std::int64_t tile_bytes = std::numeric_limits<std::int64_t>::max();
  for (const auto& [weight, bias, out] : op.projections) {
    const Matrix matrix = weights_.matrix(weight);
    projections.push_back({matrix, bias ? as_floats(*bias) : nullptr, memory_.value(out),
                           forms(product_rule(weight.format)),
                           kernels_.product[static_cast<std::size_t>(weight.format)]});
    tiles += row_tiles(weight.rows());
    tile_bytes = std::min(tile_bytes, kRowTile * weight.row_bytes());
  }
  over_tiles(tiles, tile_bytes, [=, &memory = memory_](const StepState& state, Items items, int thread) {
    std::int64_t at = 0;  // tiles of the projections so far
    for (const Projection& projection : projections) {
      const std::int64_t count = row_tiles(projection.weight.rows);
      projection.kernel({projection.in.at(state), 0, rows(state), projection.weight, projection.bias,
                         memory.opened(thread), projection.out},
                        part_of(items, at, count));
      at += count;
    }
  });
  return {};
}

Status PhaseBuilder::lower(const RopeTableOp& op) {
  constexpr std::int64_t kElementsPerAngle = 64;  // what a sine and a cosine cost
  over_rows(Rows::kTokens, 1, static_cast<std::int64_t>(op.inv_freq.size()) * kElementsPerAngle,
            [&op, out = memory_.value(op.out)](const StepState& state, Items tokens, int) {
              const std::size_t pairs = op.inv_freq.size();
              for (std::int64_t token = tokens.begin; token < tokens.end; ++token) {
                float* cosines = out + token * 2 * static_cast<std::int64_t>(pairs);
                float* sines = cosines + pairs;
                const double position = state.positions[static_cast<std::size_t>(token)];
                for (std::size_t i = 0; i < pairs; ++i) {
                  const SinCos angle = sincos64(position * op.inv_freq[i]);
                  cosines[i] = static_cast<float>(angle.cos * op.magnitude);
                  sines[i] = static_cast<float>(angle.sin * op.magnitude);
                }
              }
            });
  return {};
}

Status PhaseBuilder::lower(const RopeOp& op) {
  const Value& in = plan_.value(op.in);
  const RopeArgs args{memory_.value(op.in), memory_.value(op.table),         op.heads,
                      in.width / op.heads,  plan_.value(op.table).width / 2, memory_.value(op.out)};
  kernel_over_rows(in.rows, op.heads, args.head_dim, kernels_.rope, args);
  return {};
}

Status PhaseBuilder::lower(const StoreKvOp& op) {
  const KvBlockLayout layout = block_layout(plan_.kv_kinds[static_cast<std::size_t>(op.slot.kind)]);
  const auto kernel = kernels_.store_kv[static_cast<std::size_t>(options_.kv_type)];
  // A dimension's keys lie together: each element of a key goes to a cache line of its own.
  constexpr std::int64_t kElementsPerLine = 8;
  over_rows(Rows::kTokens, layout.num_key_value_heads, layout.head_dim * kElementsPerLine,
            [=, slot = op.slot, keys = memory_.value(op.keys), values = memory_.value(op.values)](
                const StepState& state, Items items, int) {
              kernel({kv_rows(state, slot, layout), keys, values}, items);
            });
  return {};
}

Status PhaseBuilder::lower(const AttentionOp& op) {
  const KvKind& kind = plan_.kv_kinds[static_cast<std::size_t>(op.slot.kind)];
  const AttentionShares shares{kind.num_key_value_heads, kind.window, threads_, split_blocks(kind, options_)};
  const auto add = [&](auto items, Kernels::Function<AttentionArgs> kernel) {
    phases_.push_back(
        {items, 1,
         [=, &op, &memory = memory_, layout = block_layout(kind), query = memory_.value(op.query),
          blocks = reinterpret_cast<float*>(memory_.shared.data()),
          out = memory_.value(op.out)](const StepState& state, Items part, int thread) {
           kernel({kv_rows(state, op.slot, layout), shares.tile_tokens(state.tokens()), query,
                   op.num_attention_heads, shares.window, op.scale, op.softcap, memory.scratch(thread),
                   blocks, out},
                  part);
         },
         false, 1});
  };
  const auto kv_type = static_cast<std::size_t>(options_.kv_type);
  const bool may_split = kernels_.attention_blocks[kv_type] != nullptr;
  add(
      [=](const StepState& state) {
        return may_split && shares.split(state) ? 0 : shares.kv_heads * shares.tiles(state.tokens());
      },
      kernels_.attention[kv_type]);
  if (!may_split) return {};
  add(
      [=](const StepState& state) {
        return shares.split(state) ? shares.kv_heads * shares.run_blocks(state) : 0;
      },
      kernels_.attention_blocks[kv_type]);
  add([=, heads = op.num_attention_heads](
          const StepState& state) { return shares.split(state) ? state.tokens() * heads : 0; },
      kernels_.attention_merge);
  return {};
}

Status PhaseBuilder::lower(const AddOp& op) {
  const Value& out = plan_.value(op.out);
  const ElementwiseArgs args{memory_.value(op.a), memory_.value(op.b), memory_.value(op.out)};
  kernel_over_rows(out.rows, out.width, 1, kernels_.add, args);
  return {};
}

Status PhaseBuilder::lower(const GatedActivationOp& op) {
  const Value& out = plan_.value(op.out);
  const ElementwiseArgs args{memory_.value(op.gate), memory_.value(op.up), memory_.value(op.out)};
  const auto kernel = op.activation == Activation::kSilu ? kernels_.gated_silu : kernels_.gated_gelu_tanh;
  kernel_over_rows(out.rows, out.width, 1, kernel, args);
  return {};
}

Status PhaseBuilder::lower(const SelectRowsOp& op) {
  over_rows(Rows::kLogits, 1, plan_.value(op.in).width,
            [width = plan_.value(op.in).width, in = memory_.value(op.in), out = memory_.value(op.out)](
                const StepState& state, Items rows, int) {
              for (std::int64_t row = rows.begin; row < rows.end; ++row)
                std::memcpy(out + row * width, in + state.logit_rows[static_cast<std::size_t>(row)] * width,
                            static_cast<std::size_t>(width) * sizeof(float));
            });
  return {};
}

Status PhaseBuilder::lower(const SoftCapOp& op) {
  const Value& out = plan_.value(op.out);
  const SoftCapArgs args{memory_.value(op.in), op.cap, memory_.value(op.out)};
  kernel_over_rows(out.rows, out.width, 1, kernels_.soft_cap, args);
  return {};
}

}  // namespace eider::host
