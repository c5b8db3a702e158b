// Batcher: what the scheduler's thread does: which requests are computed, what a step carries, and what
// follows from it. It knows no threads and no clock but the one it is given; Scheduler brings it requests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/thread_pool.h"
#include "runtime/engine.h"
#include "serving/job.h"
#include "serving/pacer.h"
#include "serving/scheduler_options.h"
#include "serving/session_cache.h"
#include "serving/stats.h"
#include "text/tokenizer.h"

namespace eider::serving {

class Batcher {
 public:
  Batcher(Engine& engine, const Tokenizer& tokenizer, ThreadPool& pool, const SchedulerOptions& options,
          std::unique_ptr<SessionDisk> disk);

  /// Takes a request, which will be begun after those that came before. check() must have found it right.
  void add(std::unique_ptr<Job> job);
  /// Whether a request can be computed at all.
  std::optional<Refusal> check(const Request& request) const;

  /// Ends a request, or all, at once.
  void end(RequestId id, FinishReason reason);
  void end_all(FinishReason reason);

  /// Ends what is out of time, begins what there is room for, and runs one step. False: there was nothing to
  /// run.
  bool run_step();
  /// Whether no request is left.
  bool empty() const { return waiting_.empty() && active_.empty(); }
  /// Answers of the requests that have ended since the last call.
  std::int64_t take_ended() { return std::exchange(ended_streams_, 0); }

  /// Saves all sessions, as far as the disk's budget reaches.
  void save_sessions() { cache_.save_all(); }
  SchedulerStats stats() const;

 private:
  /// A stream's share of a step: the next `tokens` of its rest. Part i of a step has row i of its logits.
  struct Part {
    Job* job;
    Stream* stream;
    std::int64_t tokens;
  };
  /// A step, or one in parts.
  struct Step {
    std::vector<Part> parts;
    std::vector<Chunk> chunks;
    std::vector<float> final_norm;  // [rows, hidden size], where a part is of an embedding
  };
  struct Sampled {
    Part* part;
    std::int64_t row;
    std::optional<Result<Delta>> delta;  // what the token adds to the answer
  };

  // Which requests are computed.
  void end_overdue();
  void begin_waiting();
  bool has_room_for(const Job& job) const;
  std::int64_t kv_bytes_of(const Job& job) const;
  bool pools_all() const;
  std::span<const TokenId> reusable_tokens(Job& job) const;
  void begin(Job& job);
  void start(Job& job);
  std::vector<LiveSession> live_sessions() const;

  // What a step carries.
  std::int64_t plan_answers();
  void add_prompt_parts(std::vector<Part>& parts, std::int64_t budget);
  void reserve(std::vector<Part>& parts);
  bool reserve(const Part& part);
  bool preempt_for(Job& job, const Error& shortage);
  void wait_again(Job& job);
  bool run_prompts(std::int64_t answers);
  void leave_prompts(const Job& job);

  // What follows from it (batcher_step.cpp).
  void run(Step& step);
  void settle(const Status& status, Step& step);
  template <class Forward>
  auto compute(Step& step, Forward forward);
  Result<bool> forward_prompts(double seconds);
  void pool_states(const Step& step);
  void absorb(Step& step);
  void fork_others(Job& job, const Stream& leader);
  void sample();
  void emit(Sampled& sampled);
  void embed(Job& job, Stream& stream);
  void finish(Job& job, Stream& stream);
  void end(Job& job, FinishReason reason);
  void fail(Job& job, const Error& failure);
  void remove_ended();
  void count_step(double seconds);

  Engine& engine_;
  const Tokenizer& tokenizer_;
  ThreadPool& pool_;
  const SchedulerOptions& options_;
  std::optional<ValueId> final_norm_;
  Pacer pacer_;
  std::deque<std::unique_ptr<Job>> waiting_;  // ids ascending
  std::vector<std::unique_ptr<Job>> active_;  // ids ascending, below those that wait
  RequestId turn_ = 0;                        // the request whose prompt had the last turn
  bool short_of_memory_ = false;              // since a preemption: nothing begins until something ends
  std::int64_t ended_streams_ = 0;
  SchedulerStats counters_;

  Step step_;
  // The prompts' step that runs in parts between steps of answers; without parts while there is none. A job
  // that ends or gives its session away leaves it first.
  Step prompts_;
  double prompt_seconds_ = 0;  // what the last call of run_step() spent on them
  std::vector<Sampled> sampled_;

  SessionCache cache_;  // last: its work refers to the jobs
};

}  // namespace eider::serving
