// Scheduler: shares one engine among many requests. A thread of its own runs steps that carry the next token
// of every running answer and a piece of a prompt, sized so that the answers keep their pace. Because of the
// numerics contract nobody's bytes depend on who else is there.
#pragma once

#include <memory>
#include <variant>

#include "base/result.h"
#include "base/thread_pool.h"
#include "runtime/engine.h"
#include "serving/request.h"
#include "serving/scheduler_options.h"
#include "serving/stats.h"
#include "text/tokenizer.h"

namespace eider::serving {

class Scheduler {
 public:
  /// Starts the thread. The engine, its pool and the tokenizer must outlive the scheduler, which alone uses
  /// them from here on (the tokenizer: anyone). Fails on options out of range, and where the disk's directory
  /// cannot be used.
  static Result<std::unique_ptr<Scheduler>> start(Engine& engine, const Tokenizer& tokenizer,
                                                  ThreadPool& pool, SchedulerOptions options);
  /// As drain() without time.
  ~Scheduler();
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  // All of these may be called from any thread.

  /// Takes a request, or says why not. Never waits for a step.
  std::variant<RequestId, Refusal> submit(Request request, EventSink sink);
  /// The request ends with the next step at the latest: each of its choices that had not ended finishes with
  /// FinishReason::kCancelled. Does nothing where it has ended.
  void cancel(RequestId id);
  /// Takes no more requests, waits until all have ended or until `deadline`, cancels the rest, saves the
  /// remembered sessions where there is a disk budget, and ends the thread.
  void drain(Clock::time_point deadline);
  SchedulerStats stats() const;

 private:
  class Impl;
  explicit Scheduler(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace eider::serving
