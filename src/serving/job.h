// Job: a request on its way through the scheduler.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "serving/request.h"
#include "serving/session_file.h"
#include "serving/state_pool.h"
#include "serving/stats.h"
#include "serving/stream.h"

namespace eider::serving {

struct Job {
  RequestId id = 0;
  Request request;
  EventSink sink;
  Clock::time_point submitted;
  ScopeHash scope{};

  std::vector<Stream> streams;    // its choices; empty until it is begun
  std::optional<StatePool> pool;  // of an embedding's states, since it was begun
  std::int64_t cached_tokens = 0;
  double queued_ms = 0;
  bool started = false;                                               // Started was sent
  bool loading = false;                                               // its session is being read from disk
  bool loads_later = false;                                           // and waits for room in memory first
  bool ended = false;                                                 // its last event was sent
  std::int64_t SchedulerStats::*outcome = &SchedulerStats::finished;  // what it counts as

  /// The choice that computes the prompt; the others then fork from it. Not to be called once ended.
  Stream& leader() { return *std::ranges::find_if_not(streams, &Stream::done); }
};

}  // namespace eider::serving
