// Loading: from flags to an engine that is ready to run, with the checks and messages on the way.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/machine.h"
#include "base/result.h"
#include "base/thread_pool.h"
#include "model/model.h"
#include "ops/backend.h"
#include "runtime/engine.h"

#include "text/tokenizer.h"
#include "tools/flags.h"
#include "tools/fp8_choice.h"
#include "tools/interrupt.h"
#include "tools/terminal.h"
#include "weights/weight_cache.h"

namespace eider {

/// Opens the checkpoint and records the model's plan; reads no weights yet.
Result<Model> open_model(const std::string& path);

/// The tokenizer that the checkpoint carries, or one line that says it has none.
Result<Tokenizer> create_tokenizer(const Checkpoint& checkpoint);

bool has_fp8_weights(const Model& model);

/// Threads and the backend that -t and --backend ask for.
struct Compute {
  std::unique_ptr<ThreadPool> pool;
  std::unique_ptr<Backend> backend;
  std::optional<Fp8Choice> fp8;  ///< where the backend has a choice and the model such weights
};
Result<Compute> create_compute(const EngineFlags& flags, const Machine& machine, bool has_fp8_weights);

/// Engine options with the context settled: what -c says, else the model's own, else what memory allows (and
/// a warning). An error names the largest context that fits.
Result<EngineOptions> settle_options(const EngineFlags& flags, const Model& model, const Backend& backend,
                                     const Machine& machine, const Terminal& terminal);

/// Where the flags say that prepared weights are kept; empty where nothing says.
std::string cache_directory(const CacheFlags& flags);
/// The cache that the flags ask for, or one line that says why there is none.
Result<WeightCache> open_cache(const CacheFlags& flags);

/// Gets the weights into memory, from the weight cache where it has them, behind a progress bar (Ctrl-C ends
/// that early), and creates the engine. What the cache lacks is written to it in the background. Warns of a
/// cache that cannot be used and does without.
Result<std::unique_ptr<Engine>> load_engine(Model model, Backend& backend, const EngineOptions& options,
                                            const CacheFlags& cache, const Terminal& terminal,
                                            const InterruptGuard& interrupt);

/// Waits behind a progress bar until the weights that came from the weight cache are checked, and those that
/// it lacked are written to it. Ctrl-C leaves the rest undone. Warns of what cannot be written; fails where
/// the check found damage, so that what was computed is void.
Status finish_cache(const Engine& engine, const Terminal& terminal, const InterruptGuard& interrupt);

}  // namespace eider
