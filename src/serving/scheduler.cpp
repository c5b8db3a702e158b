#include "serving/scheduler.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <condition_variable>
#include <mutex>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "serving/batcher.h"
#include "weights/fingerprint.h"

namespace eider::serving {
namespace {

Status check_options(const SchedulerOptions& options, const EngineOptions& engine) {
  const std::int64_t most =
      std::min({engine.max_logit_rows, engine.rows_beside, engine.max_batch_tokens - 1});
  if (options.max_streams < 1 || options.max_streams > most) {
    return error("{} answers at a time: between 1 and {} can be computed in steps of {} tokens",
                 options.max_streams, most, engine.max_batch_tokens);
  }
  if (options.max_queue < 0) return error("a queue of {} answers: must be 0 or more", options.max_queue);
  if (!(options.prefill_gap > 1 && options.prefill_gap <= 1e6))
    return error("a prefill gap of {}: must be above 1", options.prefill_gap);
  return {};
}

}  // namespace

std::uint64_t draw_seed() {
  std::random_device device;
  return (std::uint64_t{device()} << 32 | device()) >> 11;
}

class Scheduler::Impl {
 public:
  Impl(Engine& engine, const Tokenizer& tokenizer, ThreadPool& pool, SchedulerOptions options)
      : engine_(engine), tokenizer_(tokenizer), pool_(pool), options_(std::move(options)) {
    if (!options_.log) options_.log = [](const std::string&) {};
  }

  ~Impl() {
    drain(options_.now());
    batcher_.reset();  // whose disk's thread may still call wake()
  }

  Status start() {
    EIDER_TRY_STATUS(check_options(options_, engine_.options()));
    std::unique_ptr<SessionDisk> disk;
    if (options_.kv_disk) {
      EIDER_TRY(disk, open_disk(*options_.kv_disk));
    }
    batcher_.emplace(engine_, tokenizer_, pool_, options_, std::move(disk));
    stats_ = batcher_->stats();
    thread_ = std::thread([this] { run(); });
    return {};
  }

  std::variant<RequestId, Refusal> submit(Request request, EventSink sink) {
    if (std::optional<Refusal> refusal = batcher_->check(request)) return refused(std::move(*refusal));
    auto job = std::make_unique<Job>();
    if (request.draw_seed) request.sampling.seed = draw_seed();
    job->request = std::move(request);
    job->sink = std::move(sink);
    job->submitted = options_.now();
    const std::int64_t choices = job->request.choices;
    {
      const std::lock_guard lock(mutex_);
      if (draining_) return refused_locked({Refusal::Kind::kDraining, "the server is shutting down", 0});
      const std::int64_t most = options_.max_streams + options_.max_queue;
      if (open_streams_ + choices > most) {
        return refused_locked({Refusal::Kind::kQueueFull,
                               fmt::format("{} answers are being computed or wait already", open_streams_),
                               retry_after_s()});
      }
      open_streams_ += choices;
      job->id = ++last_id_;
      inbox_.push_back(std::move(job));
      awake_ = true;
      wake_.notify_one();
      return last_id_;
    }
  }

  void cancel(RequestId id) {
    const std::lock_guard lock(mutex_);
    cancelled_.push_back(id);
    awake_ = true;
    wake_.notify_one();
  }

  void drain(Clock::time_point deadline) {
    {
      const std::lock_guard lock(mutex_);
      if (!draining_ || deadline < drain_deadline_) drain_deadline_ = deadline;
      draining_ = true;
      awake_ = true;
      wake_.notify_one();
    }
    const std::lock_guard lock(join_mutex_);
    if (thread_.joinable()) thread_.join();
  }

  SchedulerStats stats() const {
    const std::lock_guard lock(mutex_);
    SchedulerStats stats = stats_;
    stats.queued += std::ssize(inbox_);
    stats.requests = static_cast<std::int64_t>(last_id_);
    stats.refused = refused_;
    return stats;
  }

 private:
  Result<std::unique_ptr<SessionDisk>> open_disk(const DiskBudget& budget) {
    const std::shared_ptr<const Checkpoint>& checkpoint = engine_.model().checkpoint;
    const auto model = checkpoint ? fingerprint(*checkpoint) : std::nullopt;
    if (!model) return error("{}: sessions of a model without files cannot be saved", budget.directory);
    return SessionDisk::open(
        budget,
        SessionFormat(*model, engine_.kv_pool(), engine_.options().context, engine_.model().vocab_size),
        options_.log, [this] { wake(); });
  }

  void wake() {
    const std::lock_guard lock(mutex_);
    awake_ = true;
    wake_.notify_one();
  }

  Refusal refused(Refusal refusal) {
    const std::lock_guard lock(mutex_);
    return refused_locked(std::move(refusal));
  }
  Refusal refused_locked(Refusal refusal) {
    ++refused_;
    return refusal;
  }

  /// When the queue will be half as long: answers that wait then, times what one of them takes of a place.
  std::int64_t retry_after_s() const {
    const double answers = static_cast<double>(options_.max_queue) / 2 + 1;
    const double seconds = seconds_per_answer_ * answers;
    return static_cast<std::int64_t>(std::clamp(std::ceil(seconds), 1.0, 300.0));
  }

  void run() {
    bool worked = false;
    while (receive(worked)) {
      const Clock::time_point begin = options_.now();
      worked = batcher_->run_step();
      publish(worked ? std::chrono::duration<double>(options_.now() - begin).count() : 0);
    }
    batcher_->save_sessions();
    publish(0);
  }

  /// Hands the batcher what came since the last step, after waiting for something where it has nothing to
  /// do. False when it is time to end.
  bool receive(bool worked) {
    std::vector<std::unique_ptr<Job>> inbox;
    std::vector<RequestId> cancelled;
    bool out_of_time = false;
    {
      std::unique_lock lock(mutex_);
      if (!worked) wait(lock);
      awake_ = false;
      inbox.swap(inbox_);
      cancelled.swap(cancelled_);
      out_of_time = draining_ && options_.now() >= drain_deadline_;
      if (draining_ && inbox.empty() && batcher_->empty()) return false;
    }
    for (std::unique_ptr<Job>& job : inbox) batcher_->add(std::move(job));
    for (const RequestId id : cancelled) batcher_->end(id, FinishReason::kCancelled);
    if (out_of_time) batcher_->end_all(FinishReason::kCancelled);
    return true;
  }

  void wait(std::unique_lock<std::mutex>& lock) {
    const auto awake = [this] { return awake_; };
    // Deadlines are by a clock that may not be the system's.
    constexpr std::chrono::milliseconds kLook{20};
    if (draining_ || !batcher_->empty())
      wake_.wait_for(lock, kLook, awake);
    else
      wake_.wait(lock, awake);
  }

  void publish(double seconds) {
    const std::lock_guard lock(mutex_);
    const std::int64_t ended = batcher_->take_ended();
    open_streams_ -= ended;
    busy_seconds_ += seconds;
    ended_streams_ += ended;
    if (ended_streams_ > 0) seconds_per_answer_ = busy_seconds_ / static_cast<double>(ended_streams_);
    stats_ = batcher_->stats();
  }

  Engine& engine_;
  const Tokenizer& tokenizer_;
  ThreadPool& pool_;
  SchedulerOptions options_;
  std::optional<Batcher> batcher_;  // the thread's, but for check()

  mutable std::mutex mutex_;  // of what follows
  std::condition_variable wake_;
  bool awake_ = false;
  std::vector<std::unique_ptr<Job>> inbox_;
  std::vector<RequestId> cancelled_;
  bool draining_ = false;
  Clock::time_point drain_deadline_;
  RequestId last_id_ = 0;
  std::int64_t open_streams_ = 0;  // of all requests that have not ended
  std::int64_t ended_streams_ = 0;
  std::int64_t refused_ = 0;
  double busy_seconds_ = 0, seconds_per_answer_ = 1;
  SchedulerStats stats_;

  std::mutex join_mutex_;  // of the thread's end
  std::thread thread_;
};

Result<std::unique_ptr<Scheduler>> Scheduler::start(Engine& engine, const Tokenizer& tokenizer,
                                                    ThreadPool& pool, SchedulerOptions options) {
  auto impl = std::make_unique<Impl>(engine, tokenizer, pool, std::move(options));
  EIDER_TRY_STATUS(impl->start());
  return std::unique_ptr<Scheduler>(new Scheduler(std::move(impl)));
}

Scheduler::Scheduler(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Scheduler::~Scheduler() = default;

std::variant<RequestId, Refusal> Scheduler::submit(Request request, EventSink sink) {
  return impl_->submit(std::move(request), std::move(sink));
}
void Scheduler::cancel(RequestId id) {
  impl_->cancel(id);
}
void Scheduler::drain(Clock::time_point deadline) {
  impl_->drain(deadline);
}
SchedulerStats Scheduler::stats() const {
  return impl_->stats();
}

}  // namespace eider::serving
