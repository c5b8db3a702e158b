// Whole models: how fast prompts are read and tokens decoded, as llama-bench counts them, and how near that
// comes to what the machine can do.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "bench/progress.h"
#include "bench/roof.h"
#include "bench/samples.h"
#include "bench/time_limit.h"
#include "runtime/engine.h"

namespace eider::bench {

/// One of the two is 0: a prompt of so many tokens, or so many decoded one by one, after `depth` tokens that
/// are not measured.
struct ModelTest {
  std::int64_t prompt = 0;
  std::int64_t generate = 0;
  std::int64_t depth = 0;

  std::int64_t tokens() const { return prompt + generate; }
  /// "pp512", "tg128 @ d4096"
  std::string name() const;
};

/// The measured model as it ran.
struct ModelRun {
  std::string model;
  std::string backend;
  std::int64_t weight_bytes = 0;
  std::int64_t parameters = 0;
  int threads = 1;
  std::int64_t max_batch_tokens = 512;
};

struct ModelResult {
  ModelRun run;
  ModelTest test;
  Samples tok_s;
  std::uint64_t logits_hash = 0;  ///< of the logits that the test computed: a prompt's last, or each token's
  double bytes_per_token = 0;     ///< that decoding at this depth reads
  Roof roof;                      ///< between the readings before and after
  double roof_change = 0;         ///< of the memory roof from before to after, as a share
  /// Of decoding: bytes read a second / read bandwidth. Of a prompt: multiply-adds of weights a second / the
  /// peak of their arithmetic. Not finite without a roof.
  double fraction_of_roof = 0;
};

/// Most tokens that a session of these tests holds.
std::int64_t context_of(const std::vector<ModelTest>& tests);

/// Runs the tests in their order, each `repetitions` times after one run that is not counted, with token ids
/// that are random and the same each time. `read_roof` is called before and after each test, if there is one;
/// `progress` after each step. When `limit` is over, the test of then has the repetitions that it finished,
/// and one without any has no result, nor have those behind it.
Result<std::vector<ModelResult>> measure_model(Engine& engine, const ModelRun& run,
                                               const std::vector<ModelTest>& tests, int repetitions,
                                               const std::function<Roof()>& read_roof,
                                               const Progress& progress, const TimeLimit& limit = {});

}  // namespace eider::bench
