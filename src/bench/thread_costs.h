// Thread costs: what the thread pool charges for a meeting of its threads.
#pragma once

#include "base/thread_pool.h"
#include "bench/samples.h"

namespace eider::bench {

/// Nanoseconds each.
struct ThreadCosts {
  int threads;
  Samples barrier;       ///< inside a run
  Samples run_spinning;  ///< an empty run right after another, while the threads still spin
  Samples run_parked;    ///< an empty run after a pause in which they have parked
};

ThreadCosts measure_thread_costs(ThreadPool& pool, int samples);

}  // namespace eider::bench
