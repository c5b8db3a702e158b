#include "backend/host/host_backend.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "backend/host/phase.h"
#include "base/check.h"

namespace eider {
namespace {

using namespace host;

class HostExecutable final : public Executable {
 public:
  static Result<std::unique_ptr<Executable>> compile(const Plan& plan, const CompileOptions& options,
                                                     const Kernels& kernels, ThreadPool& pool) {
    EIDER_TRY(Memory memory, Memory::allocate(memory_needs(plan, options, kernels), pool.size()));
    EIDER_TRY(WeightStore weights, WeightStore::create(plan, kernels, pool));
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
    return std::unique_ptr<Executable>(std::move(executable));
  }

  void run(const StepState& state, const Observer* observer) override {
    EIDER_CHECK(state.tokens() <= options_.max_tokens);
    EIDER_CHECK(row_count(Rows::kLogits, state) <= options_.max_logit_rows);
    logit_rows_ = row_count(Rows::kLogits, state);
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
        memory_(std::move(memory)),
        weights_(std::move(weights)) {}

  /// One thread's way through `phases`. Between two phases stands a barrier. Phases of so little work that
  /// one thread does it, one after the other, are done while all are at the same barrier.
  void walk(const StepState& state, std::span<const Phase> phases, int thread) {
    bool worked = false;  // anyone, since the last barrier
    const auto barrier = [&] {
      if (worked) pool_.barrier();
      worked = false;
    };
    while (!phases.empty()) {
      const Phase& phase = phases.front();
      if (phase.items_from_values) barrier();
      const std::int64_t items = phase.items(state);
      if (items > phase.grain) {
        barrier();
        const auto [begin, end] = ThreadPool::share(items, phase.grain, thread, pool_.size());
        if (begin < end) phase.run(state, {begin, end}, thread);
        worked = true;
        phases = phases.subspan(1);
        continue;
      }
      std::size_t small = 1;
      bool any = items > 0;
      for (; small < phases.size() && !phases[small].items_from_values; ++small) {
        const std::int64_t more = phases[small].items(state);
        if (more > phases[small].grain) break;
        any = any || more > 0;
      }
      const std::span<const Phase> alone = phases.first(small);
      phases = phases.subspan(small);
      if (!any) continue;
      pool_.barrier([&] {
        for (const Phase& p : alone)
          if (const std::int64_t count = p.items(state); count > 0) p.run(state, {0, count}, thread);
      });
      worked = false;
    }
  }

  void observe(const CompiledOp& op, const StepState& state, const Observer& observer) {
    for (ValueId output : op.outputs)
      observer(*op.op, output, memory_.value(output), row_count(plan_.value(output).rows, state));
  }

  const Plan& plan_;
  const CompileOptions options_;
  ThreadPool& pool_;
  Memory memory_;
  WeightStore weights_;
  std::vector<Phase> phases_;
  std::vector<CompiledOp> ops_;
  std::int64_t logit_rows_ = 0;
};

class HostBackend final : public Backend {
 public:
  HostBackend(std::string name, ThreadPool& pool, const Kernels& kernels)
      : name_(std::move(name)), pool_(pool), kernels_(kernels) {}

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
    return WeightStore::copied(plan, kernels_);
  }

  std::int64_t working_memory(const Plan& plan, const CompileOptions& options) const override {
    return memory_needs(plan, options, kernels_).bytes(pool_.size()) +
           WeightStore::bytes_beside(plan, kernels_);
  }

 private:
  std::string name_;
  ThreadPool& pool_;
  const Kernels& kernels_;
};

}  // namespace

std::unique_ptr<Backend> make_host_backend(std::string name, ThreadPool& pool, const host::Kernels& kernels) {
  return std::make_unique<HostBackend>(std::move(name), pool, kernels);
}

}  // namespace eider
