// What metrics show of a scheduler.
#pragma once

#include <array>
#include <cstdint>
#include <iterator>

namespace eider::serving {

/// Upper bounds, in seconds, of the step time histogram's buckets; one more bucket has what is above.
inline constexpr double kStepSecondsBounds[] = {0.001, 0.002, 0.005, 0.01, 0.02, 0.05,
                                                0.1,   0.2,   0.5,   1,    2,    5};

/// As of the end of a step. Counters run from the start.
struct SchedulerStats {
  // Now.
  std::int64_t queued = 0;              ///< requests that wait
  std::int64_t running = 0;             ///< requests being computed
  std::int64_t streams = 0;             ///< their answers
  std::int64_t kv_bytes = 0;            ///< of blocks in use, by running and remembered sessions
  std::int64_t kv_allocated_bytes = 0;  ///< of blocks in all
  std::int64_t sessions_in_memory = 0;  ///< remembered, not running
  std::int64_t sessions_on_disk = 0, disk_bytes = 0;
  // Counters.
  std::int64_t requests = 0, refused = 0, finished = 0, cancelled = 0, failed = 0, out_of_time = 0;
  std::int64_t prompt_tokens = 0, cached_tokens = 0, generated_tokens = 0;
  std::int64_t dropped_sessions = 0;                     ///< forgotten for want of memory or disk
  std::int64_t saved_sessions = 0, loaded_sessions = 0;  ///< to and from disk
  std::int64_t damaged_files = 0;
  std::int64_t preemptions = 0;  ///< running requests that lost their blocks and began anew
  // Steps, as a histogram.
  std::array<std::int64_t, std::size(kStepSecondsBounds) + 1> step_counts{};  ///< one for each bucket
  std::int64_t steps = 0;
  double step_seconds = 0;
};

}  // namespace eider::serving
