// `eider prepare`: writes a model's prepared weights to the weight cache ahead of its first run.
#include <fmt/format.h>

#include <memory>

#include "base/format_bytes.h"
#include "runtime/prepared_model.h"
#include "tools/commands.h"
#include "tools/flags.h"
#include "tools/interrupt.h"
#include "tools/loading.h"
#include "weights/prepared_file.h"

namespace eider {
namespace {

Result<int> prepare(const EngineFlags& flags, const Terminal& terminal) {
  const InterruptGuard interrupt;
  const Machine machine = detect_machine();
  EIDER_TRY(const Model model, open_model(flags.model));
  EIDER_TRY(const Compute compute, create_compute(flags, machine, has_fp8_weights(model)));
  EIDER_TRY(const WeightCache cache, open_cache(flags.cache));
  const std::optional<PreparedIndex> index = prepared_index(model, *compute.backend);
  if (!index) return error("{}: this backend reads the model's weights as they are stored", flags.model);

  ProgressBar bar(terminal, "preparing", ProgressBar::Unit::kBytes);
  const Status prepared =
      prepare_model(model, *compute.backend, cache, *index, [&](std::int64_t done, std::int64_t total) {
        bar.update(done, total);
        return !interrupt.interrupted();
      });
  bar.erase();
  if (!prepared.ok() && interrupt.interrupted()) {
    terminal.note("interrupted; the finished layers are kept");
    return kExitInterrupted;
  }
  EIDER_TRY_STATUS(prepared);
  EIDER_TRY_STATUS(
      write_stdout(fmt::format("{}: {}\n", cache.path_of(index->key()), format_bytes(index->file_bytes()))));
  return kExitSuccess;
}

constexpr const char* kPrepareExamples = R"(Examples:
  eider prepare -m model.gguf

Where it was interrupted, the next start goes on with the first unfinished layer.)";

}  // namespace

void add_prepare_command(CLI::App& program, Action& action) {
  const auto flags = std::make_shared<EngineFlags>();
  const auto choose = [flags, &action]() -> Status {
    action = [flags](const Terminal& terminal) { return prepare(*flags, terminal); };
    return {};
  };
  CLI::App& command =
      add_command(program, "prepare",
                  "Writes a model's prepared weights to the weight cache, so that its next start is fast",
                  kPrepareExamples, choose);
  add_model_flag(command, *flags);
  add_threads_flag(command, *flags);
  add_fp8_flag(command, *flags);
  add_cache_flags(command, flags->cache);
}

}  // namespace eider
