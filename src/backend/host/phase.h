// Phase: a piece of an operation that all threads do together, each its share of the items, or one thread
// alone where they are few.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

#include "backend/host/kernels.h"
#include "backend/host/weight_store.h"
#include "backend/host/workspace.h"
#include "base/result.h"
#include "ops/backend.h"
#include "tensor/buffer.h"

namespace eider::host {

struct Phase {
  /// Items of this step; every thread asks, and all get the same answer.
  std::function<std::int64_t(const StepState&)> items;
  /// Items so few that sharing them costs more than it gains.
  std::int64_t grain = 1;
  std::function<void(const StepState&, Items, int thread)> run;
  /// items() reads what the phase before wrote.
  bool items_from_values = false;
  /// If not 0, shares are not fixed: threads take pieces of at least so many items, at the end from one
  /// another's share.
  std::int64_t piece = 0;
};

/// The memory of a program, sized by memory_needs().
struct Memory {
  static Result<Memory> allocate(const MemoryNeeds& needs, int threads);

  float* value(ValueId id) {
    return reinterpret_cast<float*>(values.data() + offsets[static_cast<std::size_t>(id.index)]);
  }
  const float* value(ValueId id) const { return const_cast<Memory*>(this)->value(id); }
  /// `floats` of thread-owned scratch.
  float* scratch(int thread) { return reinterpret_cast<float*>(threads.data()) + thread * thread_floats; }
  /// The same memory, for an opened tile.
  std::byte* opened(int thread) { return reinterpret_cast<std::byte*>(scratch(thread)); }

  Buffer values;
  std::vector<std::int64_t> offsets;  // by value
  Buffer shared;                      // of the operation that runs
  Buffer threads;
  std::int64_t thread_floats;
  Buffer vectors;  // norm weights and biases, float
};

/// An input of products in the form that one rule reads.
struct InputForm {
  ProductRule rule;
  const float* values;
  std::function<std::int64_t(const StepState&)> rows;
  std::int64_t columns;
  std::byte* quantized;  // laid out by `layout`; of scaled floats: those
  QuantizedLayout layout;

  ProductInput at(const StepState& state) const;
};

/// The grain of items of `elements` floats each: what is less than that in all is left to one thread, because
/// a barrier costs more.
inline constexpr std::int64_t grain_of(std::int64_t elements) {
  return elements < 4096 ? 4096 / elements : 1;
}

/// Rows of a step of the given sort.
std::int64_t row_count(Rows rows, const StepState& state);
/// Least tiles of a piece that a thread takes from the work: about two microseconds of reading, so that
/// taking it costs next to nothing.
inline std::int64_t tiles_of_piece(std::int64_t tile_bytes) {
  return std::max<std::int64_t>(1, 32768 / tile_bytes);
}
/// Tiles of the rows of a weight: the items of its product.
inline std::int64_t row_tiles(std::int64_t rows) {
  return (rows + kRowTile - 1) / kRowTile;
}
/// The part of `items` that falls to a piece of `count` items beginning at `at`, counted from the piece's
/// begin; may be of negative length, which is empty.
Items part_of(Items items, std::int64_t at, std::int64_t count);

struct PickTable;

/// Turns a plan's operations into phases. What it makes looks at the plan, the kernels and the memory.
class PhaseBuilder {
 public:
  PhaseBuilder(const Plan& plan, const CompileOptions& options, const Kernels& kernels, int threads,
               Memory& memory, const WeightStore& weights)
      : plan_(plan),
        options_(options),
        kernels_(kernels),
        threads_(threads),
        memory_(memory),
        weights_(weights) {}

  /// Fails where the operation's weights are of a kind that this backend does not run.
  Result<std::vector<Phase>> build(const Op& op);

 private:
  Status lower(const EmbedOp& op);
  Status lower(const RmsNormOp& op);
  Status lower(const LinearOp& op);
  Status lower(const RopeTableOp& op);
  Status lower(const RopeOp& op);
  Status lower(const StoreKvOp& op);
  Status lower(const AttentionOp& op);
  Status lower(const AddOp& op);
  Status lower(const GatedActivationOp& op);
  Status lower(const MoeRouteOp& op);
  Status lower(const MoeFfnOp& op);
  Status lower(const SelectRowsOp& op);
  Status lower(const SoftCapOp& op);

  /// Appends a phase of `per_row` items, of `elements` floats each, for each row; run(state, items, thread).
  template <class Run>
  void over_rows(Rows rows, std::int64_t per_row, std::int64_t elements, Run run) {
    phases_.push_back(
        {[=](const StepState& state) { return row_count(rows, state) * per_row; }, grain_of(elements), run});
  }
  /// Appends a phase over `tiles` of weights, `tile_bytes` each at least.
  template <class Run>
  void over_tiles(std::int64_t tiles, std::int64_t tile_bytes, Run run) {
    phases_.push_back({[=](const StepState&) { return tiles; }, 1, run, false, tiles_of_piece(tile_bytes)});
  }
  /// Appends a phase of kernel(args, items) over rows.
  template <class Args>
  void kernel_over_rows(Rows rows, std::int64_t per_row, std::int64_t elements,
                        Kernels::Function<Args> kernel, const Args& args) {
    over_rows(rows, per_row, elements, [=](const StepState&, Items items, int) { kernel(args, items); });
  }
  /// The phases of a mixture of experts (moe_phases.cpp).
  PickTable sort_picks(const MoeFfnOp& op);
  void multiply_gate_up(const MoeFfnOp& op, const PickTable& table);
  void multiply_down(const MoeFfnOp& op, const PickTable& table);

  /// A phase that quantises or scales `in`, by the rule of its form: its row i is input_rows[i] of its values
  /// (null: i).
  void quantize(const InputForm& in, const std::int32_t* input_rows = nullptr);

  /// A form of `rows`, at most `most_rows`, in the operation's workspace.
  InputForm input_form(ProductRule rule, const float* values,
                       std::function<std::int64_t(const StepState&)> rows, std::int64_t most_rows,
                       std::int64_t columns);
  const float* as_floats(const TensorView& vector);
  /// Floats of the operation's workspace.
  float* shared_floats(std::int64_t offset) {
    return reinterpret_cast<float*>(memory_.shared.data() + offset);
  }

  const Plan& plan_;
  const CompileOptions& options_;
  const Kernels& kernels_;
  const int threads_;
  Memory& memory_;
  const WeightStore& weights_;
  std::int64_t vectors_used_ = 0;  // floats of memory_.vectors
  OpWorkspace workspace_;          // of the operation being built
  std::vector<Phase> phases_;
};

}  // namespace eider::host
