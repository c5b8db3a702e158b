// How a scheduler is set up, and how it says no.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "serving/request.h"
#include "serving/session_disk.h"

namespace eider::serving {

/// The budget of memory for KV blocks, of running and of remembered sessions, is the engine's
/// (EngineOptions::kv_limit_bytes): set one, or nothing is ever forgotten.
struct SchedulerOptions {
  std::int64_t max_streams =
      8;  ///< answers computed at a time; at most the engine's max_logit_rows, rows_beside
  std::int64_t max_queue = 64;  ///< answers that may wait beyond those
  double prefill_gap = 3;       ///< most usual steps that a running answer waits for a token; above 1
  std::optional<DiskBudget> kv_disk;
  /// One line about what went wrong outside a request (a damaged session file, a full disk); any thread.
  std::function<void(const std::string& line)> log;
  std::function<Clock::time_point()> now = [] { return Clock::now(); };
};

/// Why submit() did not take a request.
struct Refusal {
  enum class Kind : std::uint8_t {
    kQueueFull,      ///< try again after `retry_after_s`
    kDraining,       ///< the server is ending
    kPromptTooLong,  ///< it leaves no place for one token
    kUnsupported,    ///< the model has no such thing
    kInvalid         ///< a setting out of its range
  };
  Kind kind = Kind::kInvalid;
  std::string message;
  std::int64_t retry_after_s = 0;  ///< kQueueFull: an estimate from how long requests take, at least 1
};

}  // namespace eider::serving
