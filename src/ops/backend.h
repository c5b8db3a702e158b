// Backend: what executes plans. The only virtual interface of the engine; its calls are per plan and per
// step, never per tile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/function_ref.h"
#include "base/result.h"
#include "ops/plan.h"
#include "ops/step_state.h"

namespace eider {

struct CompileOptions {
  std::int64_t max_tokens = 1;      ///< most rows of a step
  std::int64_t max_logit_rows = 1;  ///< most rows whose logits a step may want
  KvType kv_type = KvType::kF16;
  std::int64_t max_positions = 0;  ///< of a sequence; beyond them a step is right too, but may be slower
  /// Where the plan's prepared weights lie, in the order of Backend::prepared_weights(); they must outlive
  /// the executable. Empty: compile() prepares them itself.
  std::vector<const std::byte*> prepared;
  std::int64_t rows_beside = 0;  ///< most rows of a run() while a run_part() is paused; 0: none is ever
};

/// A weight that a backend reads in a form of its own.
struct PreparedWeight {
  const TensorView* weight = nullptr;
  int layer = -1;          ///< of the operation that reads it
  std::int64_t bytes = 0;  ///< of the prepared form
};

/// Sees each value right after the operation that made it: [rows, width] float or int32. For tests, dumps and
/// the search for the first value that is not finite.
using Observer = FunctionRef<void(const Op& op, ValueId value, const void* data, std::int64_t rows)>;

/// Asked before an operation, by its place in the plan: whether a step in parts pauses here.
using Pause = FunctionRef<bool(std::size_t op)>;

/// A plan made ready to run. Not thread-safe: one call at a time.
class Executable {
 public:
  virtual ~Executable() = default;

  /// Runs the plan. Preconditions are the caller's (step_state.h); allocates nothing. `observer` may be null.
  virtual void run(const StepState& state, const Observer* observer = nullptr) = 0;
  /// As run(), but in parts: false where `pause`, asked before every operation but a part's first, said so.
  /// The next call, with the same step, goes on from there. Meanwhile run() may run other steps.
  virtual bool run_part(const StepState& state, Pause pause, const Observer* observer = nullptr) = 0;
  /// Forgets the step that is paused, if one is.
  virtual void abandon() = 0;
  /// [logit rows, vocab_size] of the last step that ran to its end; valid until the next call of the above.
  virtual std::span<const float> logits() const = 0;
};

/// Memory for KV blocks, zero-filled, wherever the backend wants it.
struct KvMemory {
  std::byte* data = nullptr;
  std::shared_ptr<void> owner;
};

class Backend {
 public:
  virtual ~Backend() = default;

  virtual std::string name() const = 0;
  /// `plan` and the weights it looks at must outlive the executable.
  virtual Result<std::unique_ptr<Executable>> compile(const Plan& plan, const CompileOptions& options) = 0;
  virtual Result<KvMemory> allocate_kv(std::int64_t bytes) = 0;
  /// The weights of `plan` that compile() copies into a form of its own and that no step reads where they
  /// are.
  virtual std::vector<const TensorView*> copied_weights(const Plan& plan) const = 0;
  /// The weights of `plan` that no step reads as stored, each once, in the order in which a step reads them.
  /// Empty for a backend without a form of its own.
  virtual std::vector<PreparedWeight> prepared_weights(const Plan& /*plan*/) const { return {}; }
  /// The version of that form: the same bytes come out wherever it is the same.
  virtual std::uint32_t prepared_layout() const { return 0; }
  /// Writes a weight's prepared form to `out`.
  virtual void prepare(const TensorView& /*weight*/, std::byte* /*out*/) {}
  /// Bytes that compile() will take beside the plan's weights, copies of weights among them.
  virtual std::int64_t working_memory(const Plan& plan, const CompileOptions& options) const = 0;
  /// Barriers at which the backend's threads wait for one another in one step of one token whose logits are
  /// wanted, halfway through the context.
  virtual Result<std::int64_t> barriers_per_token(const Plan& plan, const CompileOptions& options) = 0;
};

}  // namespace eider
