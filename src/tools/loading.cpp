#include "tools/loading.h"

#include <algorithm>
#include <cstdlib>

#include "backend/cpu/cpu_backend.h"
#include "backend/reference/reference_backend.h"
#include "runtime/prepared_model.h"
#include "tools/memory.h"
#include "weights/checkpoint.h"

namespace eider {
namespace {

/// $XDG_CACHE_HOME/eider/prepared, else ~/.cache/eider/prepared; empty where there is neither.
std::string default_cache_directory() {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value != nullptr ? value : "");
  };
  if (const std::string cache = variable("XDG_CACHE_HOME"); !cache.empty()) return cache + "/eider/prepared";
  if (const std::string home = variable("HOME"); !home.empty()) return home + "/.cache/eider/prepared";
  return {};
}

}  // namespace

Result<Model> open_model(const std::string& path) {
  EIDER_TRY(std::shared_ptr<const Checkpoint> checkpoint, Checkpoint::open(path, RowCopies::kWhenAsked));
  return load_model(std::move(checkpoint));
}

Result<Tokenizer> create_tokenizer(const Checkpoint& checkpoint) {
  if (!checkpoint.vocabulary())
    return error("{}: has no tokenizer that eider reads; use a .gguf file with one", checkpoint.path());
  return Tokenizer::create(*checkpoint.vocabulary()).context(checkpoint.path());
}

bool has_fp8_weights(const Model& model) {
  return std::ranges::any_of(model.checkpoint->tensors(),
                             [](const auto& named) { return named.second.format == Format::kFP8_E4M3; });
}

Result<Compute> create_compute(const EngineFlags& flags, const Machine& machine, bool has_fp8_weights) {
  Compute compute;
  const int threads = flags.threads.value_or(machine.default_threads());
  compute.pool = std::make_unique<ThreadPool>(threads, machine.cores_for(threads));
  if (flags.backend == "reference") {
    if (flags.isa) return error("--isa: only the cpu backend has instruction sets to choose from");
    if (flags.fp8_as) return error("--fp8-as: only the cpu backend has forms to choose from");
    compute.backend = make_reference_backend(*compute.pool, machine);
  } else {
    const std::string isa = flags.isa ? *flags.isa : std::string(cpu_isas(machine).front());
    if (cpu_kernels(machine, isa) != nullptr && has_fp8_weights) {
      EIDER_TRY(compute.fp8, choose_fp8_form(flags, machine, isa));
    }
    const Fp8Form form = compute.fp8 ? compute.fp8->form : Fp8Form::kFp8;
    EIDER_TRY(compute.backend, make_cpu_backend(*compute.pool, machine, isa, form).context("--isa"));
  }
  return compute;
}

Result<EngineOptions> settle_options(const EngineFlags& flags, const Model& model, const Backend& backend,
                                     const Machine& machine, const Terminal& terminal) {
  const std::int64_t own = model.max_position_embeddings;
  EngineOptions options;
  options.context = flags.context.value_or(own);
  options.max_batch_tokens = std::min(flags.max_batch_tokens, options.context);
  options.kv_type = flags.kv_type;
  if (options.context > own)
    terminal.warning(
        fmt::format("--ctx-size {} is beyond the {} tokens that this model was made for; "
                    "answers get worse there",
                    options.context, own));

  const MemoryNeeds needs = memory_needs(model, backend, options);
  if (needs.total() <= machine.available_memory) return options;
  const std::int64_t largest = largest_context(model, backend, options, machine.available_memory);
  const std::string shortage = fmt::format("a context of {} {}, but {} of memory is free", options.context,
                                           describe(needs), format_bytes(machine.available_memory));
  if (largest == 0)
    return error("{}: {}; no context fits: use a smaller model", model.checkpoint->path(), shortage);
  if (flags.context) return error("--ctx-size: {}; at most {} fits", shortage, largest);
  terminal.warning(fmt::format("{}; using -c {}", shortage, largest));
  options.context = largest;
  options.max_batch_tokens = std::min(options.max_batch_tokens, largest);
  return options;
}

std::string cache_directory(const CacheFlags& flags) {
  return flags.directory ? *flags.directory : default_cache_directory();
}

Result<WeightCache> open_cache(const CacheFlags& flags) {
  std::string directory = cache_directory(flags);
  if (directory.empty())
    return error("no weight cache: neither XDG_CACHE_HOME nor HOME is set (--weight-cache)");
  return WeightCache(std::move(directory), flags.budget);
}

Result<std::unique_ptr<Engine>> load_engine(Model model, Backend& backend, const EngineOptions& options,
                                            const CacheFlags& cache_flags, const Terminal& terminal,
                                            const InterruptGuard& interrupt) {
  ProgressBar bar(terminal, "loading", ProgressBar::Unit::kBytes);
  const auto progress = [&](std::int64_t done, std::int64_t total) {
    bar.update(done, total);
    return !interrupt.interrupted();
  };
  std::shared_ptr<PreparedModel> prepared;
  if (!cache_flags.off) {
    const auto load = [&]() -> Result<std::shared_ptr<PreparedModel>> {
      EIDER_TRY(const WeightCache cache, open_cache(cache_flags));
      return PreparedModel::load(model, backend, cache, progress);
    };
    Result<std::shared_ptr<PreparedModel>> loaded = load();
    bar.erase();
    if (loaded.ok())
      prepared = std::move(loaded).value();
    else if (!interrupt.interrupted())
      terminal.warning(loaded.error().message() + "; running without the weight cache");
    if (prepared && !prepared->note().empty()) terminal.warning(prepared->note() + "; it is prepared anew");
  }
  if (!prepared) model.checkpoint->preload(progress);
  return Engine::create(std::move(model), backend, options, std::move(prepared));
}

Status finish_cache(const Engine& engine, const Terminal& terminal, const InterruptGuard& interrupt) {
  PreparedModel* prepared = engine.prepared();
  if (prepared == nullptr) return {};
  ProgressBar bar(terminal, "checking and keeping prepared weights (Ctrl-C: not now)",
                  ProgressBar::Unit::kBytes);
  const Status finished = prepared->finish([&](std::int64_t done, std::int64_t total) {
    bar.update(done, total);
    return !interrupt.interrupted();
  });
  bar.erase();
  if (!finished.ok() && !interrupt.interrupted())
    terminal.warning(finished.error().message() + "; the prepared weights were not kept");
  return prepared->status();
}

}  // namespace eider
