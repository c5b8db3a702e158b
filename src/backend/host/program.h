// Program: the phases of a plan for steps of up to so many rows, and the memory they work in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "backend/host/phase.h"
#include "backend/host/weight_store.h"
#include "backend/host/work_shares.h"
#include "base/result.h"
#include "base/thread_pool.h"
#include "ops/backend.h"

namespace eider::host {

/// Not thread-safe. See Executable for what its calls promise.
class Program {
 public:
  /// All that is handed in must outlive the program.
  static Result<std::unique_ptr<Program>> build(const Plan& plan, const CompileOptions& options,
                                                const Kernels& kernels, ThreadPool& pool,
                                                const WeightStore& weights);

  void run(const StepState& state, const Observer* observer);
  bool run_part(const StepState& state, Pause pause, const Observer* observer);
  void abandon() { next_op_ = 0; }
  /// Whether a step in parts has begun and not ended.
  bool is_paused() const { return next_op_ > 0; }
  /// Of the last step that ended.
  std::span<const float> logits() const;

  /// The barriers of a run without an observer, for a step that need not be runnable.
  std::int64_t barriers(const StepState& state) const;

 private:
  struct CompiledOp {
    const Op* op;
    std::size_t phases_end;  // its phases begin at the end of those of the operation before
    std::vector<ValueId> outputs;
  };

  Program(const Plan& plan, const CompileOptions& options, ThreadPool& pool, Memory memory)
      : plan_(plan), options_(options), pool_(pool), shares_(pool.size()), memory_(std::move(memory)) {}

  void check(const StepState& state) const;
  void walk(const StepState& state, std::span<const Phase> phases, int thread);
  void run_together(const Phase& phase, std::int64_t items, const StepState& state, int thread);
  void observe(const CompiledOp& op, const StepState& state, const Observer& observer);

  const Plan& plan_;
  const CompileOptions options_;
  ThreadPool& pool_;
  WorkShares shares_;
  std::uint64_t first_number_ = 1;  // of this call's phases: shares_ tells them apart by their numbers
  Memory memory_;
  std::vector<Phase> phases_;
  std::vector<CompiledOp> ops_;
  std::size_t next_op_ = 0;  // of the step that is paused; 0: none is
  std::int64_t logit_rows_ = 0;
};

}  // namespace eider::host
