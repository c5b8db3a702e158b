#include "backend/host/host_backend.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "backend/host/phase.h"
#include "backend/host/work_shares.h"
#include "base/check.h"
#include "tensor/code_check.h"

namespace eider {
namespace {

using namespace host;

class HostExecutable final : public Executable {
 public:
  static Result<std::unique_ptr<Executable>> compile(const Plan& plan, const CompileOptions& options,
                                                     const Kernels& kernels, ThreadPool& pool) {
    if (kernels.packing == nullptr)  // else they are checked when they are packed
      for (const Op& op : plan.ops)
        for (const TensorView* weight : weights_of(op)) EIDER_TRY_STATUS(check_codes(*weight));
    EIDER_TRY(auto executable, build(plan, options, kernels, pool));
    return std::unique_ptr<Executable>(std::move(executable));
  }

  /// Backend::barriers_per_token().
  static Result<std::int64_t> count_barriers(const Plan& plan, const CompileOptions& options,
                                             const Kernels& kernels, ThreadPool& pool) {
    Kernels as_stored = kernels;
    as_stored.packing = nullptr;  // nothing is computed, so weights can stay where they are
    EIDER_TRY(const auto executable, build(plan, options, as_stored, pool));
    const TokenId token{};
    const auto position = static_cast<std::int32_t>(options.max_positions / 2);
    const std::int32_t row = 0;
    return executable->barriers(
        {.token_ids = {&token, 1}, .positions = {&position, 1}, .logit_rows = {&row, 1}});
  }

  static Result<std::unique_ptr<HostExecutable>> build(const Plan& plan, const CompileOptions& options,
                                                       const Kernels& kernels, ThreadPool& pool) {
    EIDER_TRY(Memory memory, Memory::allocate(memory_needs(plan, options, kernels), pool.size()));
    EIDER_TRY(WeightStore weights, WeightStore::create(plan, kernels, options.prepared, pool));
    // The phases point into the memory, so it has its final place first.
    std::unique_ptr<HostExecutable> executable(
        new HostExecutable(plan, options, pool, std::move(memory), std::move(weights)));
    PhaseBuilder builder(plan, executable->options_, kernels, pool.size(), executable->memory_,
                         executable->weights_);
    for (const Op& op : plan.ops) {
      EIDER_TRY(std::vector<Phase> phases, builder.build(op));
      std::ranges::move(phases, std::back_inserter(executable->phases_));
      executable->ops_.push_back({&op, executable->phases_.size(), outputs_of(op)});
    }
    return executable;
  }

  void run(const StepState& state, const Observer* observer) override {
    EIDER_CHECK(state.tokens() <= options_.max_tokens);
    EIDER_CHECK(row_count(Rows::kLogits, state) <= options_.max_logit_rows);
    logit_rows_ = row_count(Rows::kLogits, state);
    first_number_ += phases_.size();
    pool_.run([&](int thread) {
      if (observer == nullptr) return walk(state, phases_, thread);
      std::size_t begin = 0;
      for (const CompiledOp& op : ops_) {
        walk(state, std::span(phases_).subspan(begin, op.phases_end - begin), thread);
        // The next operation may write where this one's values lie.
        pool_.barrier([&] { observe(op, state, *observer); });
        begin = op.phases_end;
      }
    });
  }

  std::span<const float> logits() const override {
    return {memory_.value(plan_.logits), static_cast<std::size_t>(logit_rows_ * plan_.vocab_size)};
  }

 private:
  struct CompiledOp {
    const Op* op;
    std::size_t phases_end;  // its phases begin at the end of those of the operation before
    std::vector<ValueId> outputs;
  };

  HostExecutable(const Plan& plan, const CompileOptions& options, ThreadPool& pool, Memory memory,
                 WeightStore weights)
      : plan_(plan),
        options_(options),
        pool_(pool),
        shares_(pool.size()),
        memory_(std::move(memory)),
        weights_(std::move(weights)) {}

  /// The phases at the front of some: one that all threads share, or all that are so small that one thread
  /// does them, one after the other, while the others wait.
  struct Stretch {
    std::size_t phases = 1;
    std::int64_t items = 0;  // of the first
    bool alone = false;
    bool empty = false;  // nothing to do in any of those done alone
  };
  template <class ItemsOf>
  static Stretch first_stretch(std::span<const Phase> phases, ItemsOf items_of) {
    const std::int64_t items = items_of(phases.front());
    if (items > phases.front().grain) return {.items = items};
    Stretch stretch{.items = items, .alone = true, .empty = items == 0};
    for (; stretch.phases < phases.size(); ++stretch.phases) {
      const Phase& next = phases[stretch.phases];
      if (next.items_from_values) break;
      const std::int64_t more = items_of(next);
      if (more > next.grain) break;
      stretch.empty = stretch.empty && more == 0;
    }
    return stretch;
  }

  /// One thread's way through `phases`, with a barrier between two stretches.
  void walk(const StepState& state, std::span<const Phase> phases, int thread) {
    bool worked = false;  // anyone, since the last barrier
    const auto barrier = [&] {
      if (worked) pool_.barrier();
      worked = false;
    };
    while (!phases.empty()) {
      const Phase& phase = phases.front();
      if (phase.items_from_values) barrier();
      const Stretch stretch = first_stretch(phases, [&](const Phase& p) { return p.items(state); });
      const std::span<const Phase> alone = phases.first(stretch.phases);
      phases = phases.subspan(stretch.phases);
      if (!stretch.alone) {
        barrier();
        run_together(phase, stretch.items, state, thread);
        worked = true;
      } else if (!stretch.empty) {
        pool_.barrier([&] {
          for (const Phase& p : alone)
            if (const std::int64_t items = p.items(state); items > 0) p.run(state, {0, items}, thread);
        });
        worked = false;
      }
    }
  }

  /// A thread's part of a phase that all work on.
  void run_together(const Phase& phase, std::int64_t items, const StepState& state, int thread) {
    if (phase.piece > 0 && items <= WorkShares::kMostItems) {
      const auto number = static_cast<std::uint16_t>(first_number_ + (&phase - phases_.data()));
      shares_.work(number, items, phase.piece, thread, [&](Items piece) { phase.run(state, piece, thread); });
      return;
    }
    const std::int64_t aligned = (phase.grain + 63) / 64;  // shares end where vectors do
    const auto [begin, end] = ThreadPool::share(items, aligned, thread, pool_.size());
    if (begin < end) phase.run(state, {begin, end}, thread);
  }

  /// The barriers of walk(), and the one at its end, for a step that need not be runnable.
  std::int64_t barriers(const StepState& state) const {
    std::int64_t count = 1;
    bool worked = false;
    for (std::span<const Phase> phases = phases_; !phases.empty();) {
      // What values decide is taken to be work for all.
      const Stretch stretch = first_stretch(
          phases, [&](const Phase& p) { return p.items_from_values ? p.grain + 1 : p.items(state); });
      phases = phases.subspan(stretch.phases);
      if (stretch.alone && stretch.empty) continue;
      if (stretch.alone || worked) ++count;
      worked = !stretch.alone;
    }
    return count;
  }

  void observe(const CompiledOp& op, const StepState& state, const Observer& observer) {
    for (ValueId output : op.outputs)
      observer(*op.op, output, memory_.value(output), row_count(plan_.value(output).rows, state));
  }

  const Plan& plan_;
  const CompileOptions options_;
  ThreadPool& pool_;
  WorkShares shares_;
  std::uint64_t first_number_ = 1;  // of this run's phases: shares_ tells them apart by their numbers
  Memory memory_;
  WeightStore weights_;
  std::vector<Phase> phases_;
  std::vector<CompiledOp> ops_;
  std::int64_t logit_rows_ = 0;
};

class HostBackend final : public Backend {
 public:
  HostBackend(std::string name, ThreadPool& pool, const Kernels& kernels, std::uint32_t packing_version)
      : name_(std::move(name)), pool_(pool), kernels_(kernels), packing_version_(packing_version) {}

  std::string name() const override { return name_; }

  Result<std::unique_ptr<Executable>> compile(const Plan& plan, const CompileOptions& options) override {
    return HostExecutable::compile(plan, options, kernels_, pool_);
  }

  Result<KvMemory> allocate_kv(std::int64_t bytes) override {
    EIDER_TRY(Buffer buffer, Buffer::allocate(static_cast<std::size_t>(bytes)));
    auto owner = std::make_shared<Buffer>(std::move(buffer));
    std::byte* data = owner->data();
    return KvMemory{data, std::move(owner)};
  }

  std::vector<const TensorView*> copied_weights(const Plan& plan) const override {
    return host::copied_weights(plan, kernels_);
  }

  std::vector<PreparedWeight> prepared_weights(const Plan& plan) const override {
    return packed_weights(plan, kernels_);
  }

  std::uint32_t prepared_layout() const override { return packing_version_; }

  void prepare(const TensorView& weight, std::byte* out) override {
    pack(weight, *kernels_.packing, pool_, out);
  }

  std::int64_t working_memory(const Plan& plan, const CompileOptions& options) const override {
    return memory_needs(plan, options, kernels_).bytes(pool_.size()) + packed_bytes(plan, kernels_);
  }

  Result<std::int64_t> barriers_per_token(const Plan& plan, const CompileOptions& options) override {
    return HostExecutable::count_barriers(plan, options, kernels_, pool_);
  }

 private:
  std::string name_;
  ThreadPool& pool_;
  const Kernels& kernels_;
  const std::uint32_t packing_version_;
};

}  // namespace

std::unique_ptr<Backend> make_host_backend(std::string name, ThreadPool& pool, const host::Kernels& kernels,
                                           std::uint32_t packing_version) {
  return std::make_unique<HostBackend>(std::move(name), pool, kernels, packing_version);
}

}  // namespace eider
