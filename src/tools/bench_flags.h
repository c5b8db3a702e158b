// The flags of `eider bench`.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bench/attention_bench.h"
#include "bench/model_bench.h"
#include "bench/table.h"
#include "format/format.h"
#include "tools/cli_fwd.h"
#include "tools/flags.h"
#include "weights/synthetic_shapes.h"

namespace eider {

struct BenchFlags {
  // What is measured.
  bool machine = false;
  bool kernels = false;
  std::vector<std::string> models;  ///< paths
  std::vector<ModelShape> synthetic;
  std::optional<std::string> write;  ///< where the synthetic model goes instead
  std::vector<std::string> ab;       ///< the two sides, or none
  std::vector<std::string> compare;  ///< files of an earlier and a later result, or none

  std::vector<Format> formats;  ///< of kernels and synthetic models; empty: the default of each
  std::int64_t layers = 0;      ///< of synthetic models; 0: all
  std::uint64_t seed = 1;

  // How.
  EngineFlags engine;  ///< backend, isa, kv_type
  std::vector<std::int64_t> prompts, generates, depths, threads, batches;
  std::int64_t repetitions = 5;
  std::int64_t pairs = 10;                                    ///< of --ab
  std::vector<std::pair<std::int64_t, std::int64_t>> shapes;  ///< rows, columns of kernels
  std::vector<std::int64_t> tokens;                           ///< of kernels
  std::vector<bench::HeadShape> heads;                        ///< of attention kernels
  std::optional<std::size_t> cold_bytes;
  bool no_roof = false;  ///< models only

  std::optional<std::string> html;  ///< where the page goes
  bench::TableStyle style = bench::TableStyle::kText;
  bool json = false;

  /// Prompts and generations at each depth, in the order that llama-bench has them.
  std::vector<bench::ModelTest> tests() const;

  std::function<std::vector<GivenFlag>()>
      given;  ///< which of them the command line has; of add_bench_flags()
};

/// Adds the flags and their help. `command` must outlive the use of `flags.given`.
void add_bench_flags(CLI::App& command, BenchFlags& flags);

/// What flags say together; CLI11 checks each by itself.
Status check_bench_flags(const BenchFlags& flags);

/// The flags that `words` give by themselves.
Result<std::vector<GivenFlag>> parse_bench_words(std::vector<std::string> words);

}  // namespace eider
