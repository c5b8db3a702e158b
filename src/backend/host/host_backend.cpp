#include "backend/host/host_backend.h"

#include <utility>

#include "backend/host/program.h"
#include "base/check.h"
#include "tensor/code_check.h"

namespace eider {
namespace {

using namespace host;

/// The options of the steps that run while one is paused: they may want the logits of all their rows.
CompileOptions beside(const CompileOptions& options) {
  CompileOptions small = options;
  small.max_tokens = small.max_logit_rows = options.rows_beside;
  return small;
}

class HostExecutable final : public Executable {
 public:
  static Result<std::unique_ptr<Executable>> compile(const Plan& plan, const CompileOptions& options,
                                                     const Kernels& kernels, ThreadPool& pool) {
    if (kernels.packing == nullptr)  // else they are checked when they are packed
      for (const Op& op : plan.ops)
        for (const TensorView* weight : weights_of(op)) EIDER_TRY_STATUS(check_codes(*weight));
    EIDER_TRY(WeightStore weights, WeightStore::create(plan, kernels, options.prepared, pool));
    std::unique_ptr<HostExecutable> executable(new HostExecutable(std::move(weights)));
    EIDER_TRY(executable->main_, Program::build(plan, options, kernels, pool, executable->weights_));
    executable->last_ = executable->main_.get();
    if (options.rows_beside > 0) {
      EIDER_TRY(executable->beside_,
                Program::build(plan, beside(options), kernels, pool, executable->weights_));
    }
    return std::unique_ptr<Executable>(std::move(executable));
  }

  void run(const StepState& state, const Observer* observer) override {
    EIDER_CHECK(!main_->is_paused() || beside_ != nullptr);
    Program& program = main_->is_paused() ? *beside_ : *main_;
    program.run(state, observer);
    last_ = &program;
  }

  bool run_part(const StepState& state, Pause pause, const Observer* observer) override {
    if (!main_->run_part(state, pause, observer)) return false;
    last_ = main_.get();
    return true;
  }

  void abandon() override { main_->abandon(); }

  std::span<const float> logits() const override { return last_->logits(); }

 private:
  explicit HostExecutable(WeightStore weights) : weights_(std::move(weights)) {}

  WeightStore weights_;
  std::unique_ptr<Program> main_;
  std::unique_ptr<Program> beside_;  // for run() while main_ is paused
  Program* last_ = nullptr;          // whose step ended last
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
    const auto program = [&](const CompileOptions& of) {
      return memory_needs(plan, of, kernels_).bytes(pool_.size());
    };
    return program(options) + (options.rows_beside > 0 ? program(beside(options)) : 0) +
           packed_bytes(plan, kernels_);
  }

  Result<std::int64_t> barriers_per_token(const Plan& plan, const CompileOptions& options) override {
    Kernels as_stored = kernels_;
    as_stored.packing = nullptr;  // nothing is computed, so weights can stay where they are
    EIDER_TRY(const WeightStore weights, WeightStore::create(plan, as_stored, options.prepared, pool_));
    EIDER_TRY(const auto program, Program::build(plan, options, as_stored, pool_, weights));
    const TokenId token{};
    const auto position = static_cast<std::int32_t>(options.max_positions / 2);
    const std::int32_t row = 0;
    return program->barriers(
        {.token_ids = {&token, 1}, .positions = {&position, 1}, .logit_rows = {&row, 1}});
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
