// Attention by itself: one layer's attention of a step over keys and values in memory, as a backend runs it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "bench/paged_memory.h"
#include "bench/progress.h"
#include "bench/roof.h"
#include "bench/samples.h"
#include "bench/time_limit.h"
#include "ops/backend.h"

namespace eider::bench {

/// Heads of a model's attention: query heads, each group of which shares a KV head.
struct HeadShape {
  std::int64_t heads, kv_heads, head_dim;
};

struct AttentionCase {
  HeadShape shape;
  KvType kv_type;
  std::int64_t tokens;    ///< of the step; 1: decode
  std::int64_t position;  ///< of its first token: so many are in the context before

  /// What the step reads at least (each visible key and value once) and computes (two multiply-adds for each
  /// dimension of each query head and each key that it sees).
  Work work() const;
};

struct AttentionResult {
  AttentionCase attention;
  std::string isa;
  int threads = 1;
  Samples layers_s;  ///< layers a second
  Roof roof;
  double fraction_of_roof = 0;  ///< the larger of the shares of read bandwidth and of the fp32 peak

  /// 10^9 a second, of the median: bytes of keys and values, operations.
  double gb_s() const;
  double gop_s() const;
};

/// What measures. `memory` holds copies of the context's keys and values, which steps walk in turn: some
/// times the last-level cache. References must outlive the measurement.
struct AttentionSetup {
  Backend& backend;
  std::string isa;
  int threads;
  const PagedMemory& memory;
};

/// Each case `samples` times; `read_roof` is called before each, `progress` after it. `limit` ends it as it
/// does measure_kernels(). Fails where the memory does not hold a context.
Result<std::vector<AttentionResult>> measure_attention(const AttentionSetup& setup,
                                                       const std::vector<AttentionCase>& cases, int samples,
                                                       const std::function<Roof()>& read_roof,
                                                       const Progress& progress, const TimeLimit& limit = {});

}  // namespace eider::bench
