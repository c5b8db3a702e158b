#include "backend/host/program.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/check.h"

namespace eider::host {
namespace {

/// The phases at the front of some: one that all threads share, or all that are so small that one thread
/// does them, one after the other, while the others wait.
struct Stretch {
  std::size_t phases = 1;
  std::int64_t items = 0;  // of the first
  bool alone = false;
  bool empty = false;  // nothing to do in any of those done alone
};

template <class ItemsOf>
Stretch first_stretch(std::span<const Phase> phases, ItemsOf items_of) {
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

}  // namespace

Result<std::unique_ptr<Program>> Program::build(const Plan& plan, const CompileOptions& options,
                                                const Kernels& kernels, ThreadPool& pool,
                                                const WeightStore& weights) {
  EIDER_TRY(Memory memory, Memory::allocate(memory_needs(plan, options, kernels), pool.size()));
  // The phases point into the memory, so it has its final place first.
  std::unique_ptr<Program> program(new Program(plan, options, pool, std::move(memory)));
  PhaseBuilder builder(plan, program->options_, kernels, pool.size(), program->memory_, weights);
  for (const Op& op : plan.ops) {
    EIDER_TRY(std::vector<Phase> phases, builder.build(op));
    std::ranges::move(phases, std::back_inserter(program->phases_));
    program->ops_.push_back({&op, program->phases_.size(), outputs_of(op)});
  }
  return program;
}

void Program::check(const StepState& state) const {
  EIDER_CHECK(state.tokens() <= options_.max_tokens);
  EIDER_CHECK(row_count(Rows::kLogits, state) <= options_.max_logit_rows);
}

void Program::run(const StepState& state, const Observer* observer) {
  if (observer != nullptr) {
    run_part(
        state, [](std::size_t) { return false; }, observer);
    return;
  }
  check(state);
  first_number_ += phases_.size();
  pool_.run([&](int thread) { walk(state, phases_, thread); });
  logit_rows_ = row_count(Rows::kLogits, state);
}

bool Program::run_part(const StepState& state, Pause pause, const Observer* observer) {
  check(state);
  first_number_ += phases_.size();
  const std::size_t first = next_op_;
  bool pauses = false;  // written by one thread while the others wait for it
  pool_.run([&](int thread) {
    for (std::size_t i = first; i < ops_.size() && !pauses; ++i) {
      const std::size_t begin = i == 0 ? 0 : ops_[i - 1].phases_end;
      walk(state, std::span(phases_).subspan(begin, ops_[i].phases_end - begin), thread);
      // The next operation may write where this one's values lie.
      pool_.barrier([&] {
        if (observer != nullptr) observe(ops_[i], state, *observer);
        next_op_ = i + 1;
        pauses = next_op_ < ops_.size() && pause(next_op_);
      });
    }
  });
  if (pauses) return false;
  next_op_ = 0;
  logit_rows_ = row_count(Rows::kLogits, state);
  return true;
}

std::span<const float> Program::logits() const {
  return {memory_.value(plan_.logits), static_cast<std::size_t>(logit_rows_ * plan_.vocab_size)};
}

/// One thread's way through `phases`, with a barrier between two stretches.
void Program::walk(const StepState& state, std::span<const Phase> phases, int thread) {
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
void Program::run_together(const Phase& phase, std::int64_t items, const StepState& state, int thread) {
  if (phase.piece > 0 && items <= WorkShares::kMostItems) {
    const auto number = static_cast<std::uint16_t>(first_number_ + (&phase - phases_.data()));
    shares_.work(number, items, phase.piece, thread, [&](Items piece) { phase.run(state, piece, thread); });
    return;
  }
  const std::int64_t aligned = (phase.grain + 63) / 64;  // shares end where vectors do
  const auto [begin, end] = ThreadPool::share(items, aligned, thread, pool_.size());
  if (begin < end) phase.run(state, {begin, end}, thread);
}

std::int64_t Program::barriers(const StepState& state) const {
  std::int64_t count = 1;  // at the end of the run
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

void Program::observe(const CompiledOp& op, const StepState& state, const Observer& observer) {
  for (ValueId output : op.outputs)
    observer(*op.op, output, memory_.value(output), row_count(plan_.value(output).rows, state));
}

}  // namespace eider::host
