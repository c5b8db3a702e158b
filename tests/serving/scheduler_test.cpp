#include "serving/scheduler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <thread>

#include "tests/runtime/fake_backend.h"
#include "tests/serving/listener.h"

namespace eider::serving {
namespace {

using namespace std::chrono_literals;
using eider::test::byte_tokenizer;
using eider::test::compute_alone;
using eider::test::expected_digest;
using eider::test::fake_model;
using eider::test::FakeBackend;
using eider::test::fill_logits;
using eider::test::full_kind;
using eider::test::kFakeVocab;
using eider::test::Listener;
using eider::test::some_tokens;
using eider::test::submit;

// A scheduler over a model that is a digest, by a clock that stands still unless a step moves it.
class SchedulerTest : public ::testing::Test {
 protected:
  void start(SchedulerOptions options, EngineOptions engine_options = {}) {
    scheduler_.reset();
    engine_options.max_batch_tokens = 64;
    engine_options.rows_beside = 8;
    auto engine = Engine::create(fake_model({full_kind()}, 4096), backend_, engine_options);
    ASSERT_TRUE(engine.ok());
    engine_ = std::move(*engine);
    options.now = [this] { return Clock::time_point(Clock::duration(now_.load())); };
    auto scheduler = Scheduler::start(*engine_, tokenizer_, pool_, options);
    ASSERT_TRUE(scheduler.ok()) << scheduler.error().message();
    scheduler_ = std::move(*scheduler);
  }

  void advance(std::chrono::microseconds time) { now_ += Clock::duration(time).count(); }

  // Holds the engine in its next step until open(). `then` runs in each step.
  void close(std::function<void()> then = [] {}) {
    closed_ = true;
    backend_.script.on_run = [this, then = std::move(then)](const StepState&) {
      closed_.wait(true);
      then();
    };
  }
  void open() {
    closed_ = false;
    closed_.notify_all();
  }

  // Once the last request's last step is among them.
  SchedulerStats settled_stats() const {
    for (;;) {
      const SchedulerStats stats = scheduler_->stats();
      if (stats.finished + stats.cancelled + stats.failed + stats.out_of_time == stats.requests) return stats;
      std::this_thread::yield();
    }
  }

  Request request(std::int64_t prompt_tokens, std::int64_t max_tokens, std::uint64_t seed = 1) {
    Request request;
    request.prompt = some_tokens(prompt_tokens, seed);
    request.sampling.seed = seed;
    request.limits.max_tokens = max_tokens;
    return request;
  }

  Refusal refusal(Request request) {
    const auto taken = scheduler_->submit(std::move(request), [](const Event&) { FAIL(); });
    EXPECT_TRUE(std::holds_alternative<Refusal>(taken));
    return std::get<Refusal>(taken);
  }

  const Tokenizer tokenizer_ = byte_tokenizer();
  ThreadPool pool_{2};
  std::atomic<Clock::rep> now_ = 0;
  std::atomic<bool> closed_ = false;
  FakeBackend backend_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Scheduler> scheduler_;
};

TEST_F(SchedulerTest, AnswersNeverWaitLongerThanThePrefillGap) {
  // 10 ms and 1 ms for each answer, 0.7 ms for each token of a prompt.
  backend_.script.on_operation = [this](const StepState& step) {
    std::vector<std::int64_t> rows(step.sequences.size(), 0);
    for (const std::int32_t sequence : step.sequence) ++rows[static_cast<std::size_t>(sequence)];
    std::chrono::microseconds time = 10ms;
    for (const std::int64_t count : rows) time += count == 1 ? 1000us : 700us * count;
    advance(time / engine_->model().plan.ops.size());
  };
  start({});
  Request with_times = request(3, 400);
  std::vector<Clock::rep> times;  // of the tokens; read once it has ended
  Listener listener;
  ASSERT_TRUE(std::holds_alternative<RequestId>(
      scheduler_->submit(with_times, [&, sink = listener.sink()](Event event) {
        if (std::holds_alternative<Delta>(event)) times.push_back(now_);
        sink(std::move(event));
      })));
  listener.wait_for_tokens(20);
  const Listener long_prompt = submit(*scheduler_, request(2000, 5, 2));
  long_prompt.wait();
  listener.wait();
  ASSERT_EQ(times.size(), 400u);
  const Clock::rep usual = times[10] - times[9];
  Clock::rep longest = 0;
  for (std::size_t i = 1; i < times.size(); ++i) longest = std::max(longest, times[i] - times[i - 1]);
  EXPECT_EQ(usual, Clock::duration(11ms).count());
  EXPECT_LE(longest, 3 * usual);
  EXPECT_GE(longest, 2 * usual);  // the time is used
}

// A request that ends while its prompt's step is paused takes nobody with it, and leaves blocks that others
// get.
TEST_F(SchedulerTest, PromptsWhoseStepIsPausedCanBeCancelled) {
  backend_.script.on_operation = [this](const StepState&) { advance(1ms); };
  start({});
  const Request answer = request(3, 400), shares_step = request(30, 20, 7);
  const Listener running = submit(*scheduler_, answer);
  running.wait_for_tokens(10);
  std::vector<Listener> kept;
  for (std::uint64_t i = 0; i < 20; ++i) {
    Listener listener;
    const auto id = scheduler_->submit(request(30, 5, 100 + i), listener.sink());
    kept.push_back(submit(*scheduler_, shares_step));
    running.wait_for_tokens(10 + 3 * static_cast<std::size_t>(i));
    scheduler_->cancel(std::get<RequestId>(id));
  }
  running.wait();
  backend_.script.on_operation = nullptr;
  auto alone = Engine::create(fake_model({full_kind()}, 4096), backend_, {});
  ASSERT_TRUE(alone.ok());
  for (const Listener& listener : kept) listener.wait();
  scheduler_.reset();
  expect_same(running.choice(), compute_alone(**alone, tokenizer_, answer), "the running one");
  const HeardChoice expected = compute_alone(**alone, tokenizer_, shares_step);
  for (const Listener& listener : kept) expect_same(listener.choice(), expected, "beside a cancelled one");
}

TEST_F(SchedulerTest, PromptsTakeTurns) {
  start({.max_streams = 8});
  close();
  const Listener first = submit(*scheduler_, request(1, 1));  // holds the engine until all have come
  const Listener long_prompt = submit(*scheduler_, request(3000, 1, 2));
  const Listener short_prompt = submit(*scheduler_, request(70, 1, 3));
  std::atomic<bool> long_had_ended = false;
  Listener last;
  scheduler_->submit(request(70, 1, 4), [&, sink = last.sink()](Event event) {
    if (std::holds_alternative<Finished>(event)) long_had_ended = long_prompt.ended();
    sink(std::move(event));
  });
  open();
  last.wait();
  EXPECT_FALSE(long_had_ended);
  short_prompt.wait();
  long_prompt.wait();
}

TEST_F(SchedulerTest, CancelEndsARequestBeforeTheNextStep) {
  start({});
  Listener listener;
  std::atomic<RequestId> id = 0;
  std::size_t deltas = 0;
  const auto taken = scheduler_->submit(request(200, 1000), [&, sink = listener.sink()](Event event) {
    if (std::holds_alternative<Delta>(event) && ++deltas == 3) {
      while (id == 0) std::this_thread::yield();
      scheduler_->cancel(id);
    }
    sink(std::move(event));
  });
  id = std::get<RequestId>(taken);
  listener.wait();
  EXPECT_EQ(listener.choice().ids.size(), 3u);
  EXPECT_EQ(listener.choice().finished.reason, FinishReason::kCancelled);
  EXPECT_EQ(settled_stats().cancelled, 1);
  scheduler_->cancel(id);     // has ended
  scheduler_->cancel(12345);  // never was

  // What was computed of it is remembered.
  const Listener again = submit(*scheduler_, request(200, 1));
  again.wait();
  EXPECT_EQ(again.started().cached_tokens, 199);
}

TEST_F(SchedulerTest, CancelEndsARequestThatWaits) {
  start({.max_streams = 1});
  close();
  const Listener first = submit(*scheduler_, request(10, 2));
  const Listener waiting;
  const auto taken = scheduler_->submit(request(10, 2), waiting.sink());
  scheduler_->cancel(std::get<RequestId>(taken));
  open();
  first.wait();
  waiting.wait();
  EXPECT_EQ(waiting.choice().ids.size(), 0u);
  EXPECT_EQ(waiting.choice().finished.reason, FinishReason::kCancelled);
}

TEST_F(SchedulerTest, AFullQueueRefuses) {
  start({.max_streams = 2, .max_queue = 3});
  close();
  std::vector<Listener> taken;
  for (std::uint64_t i = 0; i < 3; ++i) taken.push_back(submit(*scheduler_, request(10, 3, i)));
  Request two = request(10, 3, 9);
  two.choices = 2;
  taken.push_back(submit(*scheduler_, two));
  const Refusal full = refusal(request(10, 3));
  EXPECT_EQ(full.kind, Refusal::Kind::kQueueFull);
  EXPECT_GE(full.retry_after_s, 1);
  open();
  for (const Listener& listener : taken) listener.wait();
  submit(*scheduler_, request(10, 3)).wait();
  const SchedulerStats stats = settled_stats();
  EXPECT_EQ(stats.refused, 1);
  EXPECT_EQ(stats.requests, 5);
  EXPECT_EQ(stats.finished, 5);
  EXPECT_EQ(stats.generated_tokens, 3 * 6);
}

TEST_F(SchedulerTest, RefusesWhatCannotBeComputed) {
  start({.max_streams = 2});
  EXPECT_EQ(refusal(request(4097, 1)).kind, Refusal::Kind::kPromptTooLong);
  EXPECT_EQ(refusal(request(0, 1)).kind, Refusal::Kind::kInvalid);
  Request wrong = request(5, 1);
  wrong.prompt[2] = kFakeVocab;
  EXPECT_EQ(refusal(wrong).kind, Refusal::Kind::kInvalid);
  wrong = request(5, 1);
  wrong.choices = 3;
  EXPECT_EQ(refusal(wrong).kind, Refusal::Kind::kInvalid);
  wrong = request(5, 1);
  wrong.sampling.top_p = 2;
  EXPECT_NE(refusal(wrong).message.find("top-p"), std::string::npos);
  wrong = request(5, 1);
  wrong.limits.stop = {""};
  EXPECT_EQ(refusal(wrong).kind, Refusal::Kind::kInvalid);
  wrong = request(5, 1);
  wrong.embedding = true;  // the fake model has no final norm
  EXPECT_EQ(refusal(wrong).kind, Refusal::Kind::kUnsupported);

  EXPECT_FALSE(Scheduler::start(*engine_, tokenizer_, pool_, {.max_streams = 9}).ok());
  EXPECT_FALSE(Scheduler::start(*engine_, tokenizer_, pool_, {.prefill_gap = 1}).ok());
}

TEST_F(SchedulerTest, DeadlinesEndWhatRunsAndWhatWaits) {
  start({.max_streams = 1});
  Request first = request(10, 3000), second = request(10, 10);
  first.deadline = Clock::time_point(50ms);
  second.deadline = Clock::time_point(20ms);
  close([this] { advance(1ms); });
  const Listener running = submit(*scheduler_, first), waiting = submit(*scheduler_, second);
  open();
  running.wait();
  waiting.wait();
  EXPECT_EQ(running.choice().finished.reason, FinishReason::kDeadline);
  EXPECT_EQ(running.choice().ids.size(), 50u);
  EXPECT_EQ(waiting.choice().finished.reason, FinishReason::kDeadline);
  EXPECT_EQ(waiting.choice().ids.size(), 0u);
  EXPECT_EQ(settled_stats().out_of_time, 2);
}

TEST_F(SchedulerTest, DrainingFinishesWhatWasTaken) {
  start({.max_streams = 1});
  const Listener running = submit(*scheduler_, request(10, 100)),
                 waiting = submit(*scheduler_, request(10, 5));
  scheduler_->drain(Clock::time_point(1h));
  EXPECT_EQ(running.choice().ids.size(), 100u);
  EXPECT_EQ(waiting.choice().ids.size(), 5u);
  EXPECT_EQ(refusal(request(10, 1)).kind, Refusal::Kind::kDraining);
}

TEST_F(SchedulerTest, DrainingCancelsWhatTakesTooLong) {
  start({.max_streams = 1});
  backend_.script.on_run = [this](const StepState&) { advance(1ms); };
  const Listener running = submit(*scheduler_, request(10, 4000)),
                 waiting = submit(*scheduler_, request(10, 5));
  const Clock::time_point deadline = Clock::time_point(Clock::duration(now_.load())) + 100ms;
  scheduler_->drain(deadline);
  EXPECT_EQ(running.choice().finished.reason, FinishReason::kCancelled);
  // A token each millisecond since the beginning.
  EXPECT_LE(std::ssize(running.choice().ids), deadline.time_since_epoch() / 1ms + 1);
  EXPECT_EQ(waiting.choice().finished.reason, FinishReason::kCancelled);
}

TEST_F(SchedulerTest, AFailureEndsOnlyTheRequestItBelongsTo) {
  // Whoever comes to position 100 gets values that are not numbers.
  backend_.script.logits = [](std::int64_t position, std::uint64_t, std::span<float> logits) {
    if (position == 100) logits[3] = std::numeric_limits<float>::quiet_NaN();
  };
  start({});
  std::vector<Listener> good;
  for (std::uint64_t i = 0; i < 3; ++i) good.push_back(submit(*scheduler_, request(20, 60, i)));
  const Listener bad = submit(*scheduler_, request(60, 90, 5));
  bad.wait();
  EXPECT_NE(bad.failure(), "");
  EXPECT_EQ(bad.choice().ids.size(), 41u);  // from the logits of positions 59 to 99
  for (const Listener& listener : good) {
    listener.wait();
    EXPECT_EQ(listener.choice().ids.size(), 60u);
  }
  EXPECT_EQ(settled_stats().failed, 1);
}

// More conversations than memory has room for, each as long as all of it: those that came last give way, and
// in the end everyone has the answer of the plain loop.
TEST_F(SchedulerTest, ShortageOfMemoryChangesNothing) {
  const std::int64_t block = kv_block_bytes(full_kind(), KvType::kF16);
  EngineOptions engine_options;
  engine_options.kv_limit_bytes = 9 * block;
  start({.max_streams = 4}, engine_options);
  close();
  std::vector<Listener> listeners;
  std::vector<Request> requests;
  for (std::uint64_t i = 0; i < 6; ++i) {
    requests.push_back(request(100 + 60 * static_cast<std::int64_t>(i), 500, i));
    listeners.push_back(submit(*scheduler_, requests.back()));
  }
  open();
  auto alone = Engine::create(fake_model({full_kind()}, 4096), backend_, {});
  ASSERT_TRUE(alone.ok());
  for (std::size_t i = 0; i < listeners.size(); ++i) {
    listeners[i].wait();
    EXPECT_EQ(listeners[i].failure(), "");
  }
  const SchedulerStats stats = settled_stats();
  EXPECT_GT(stats.preemptions, 0);
  EXPECT_LE(stats.kv_bytes, engine_options.kv_limit_bytes);
  scheduler_.reset();
  for (std::size_t i = 0; i < listeners.size(); ++i) {
    expect_same(listeners[i].choice(), compute_alone(**alone, tokenizer_, requests[i]),
                "request " + std::to_string(i));
  }
}

TEST_F(SchedulerTest, AnAnswerThatOutgrowsAllMemoryFails) {
  EngineOptions engine_options;
  engine_options.kv_limit_bytes = 3 * kv_block_bytes(full_kind(), KvType::kF16);
  start({}, engine_options);
  EXPECT_EQ(refusal(request(385, 1)).kind, Refusal::Kind::kPromptTooLong);
  const Listener listener = submit(*scheduler_, request(300, 200));
  listener.wait();
  EXPECT_NE(listener.failure().find("KV cache"), std::string::npos);
  submit(*scheduler_, request(300, 50)).wait();
}

TEST_F(SchedulerTest, MasksAndLogprobs) {
  start({});
  Request masked = request(10, 20);
  masked.logprobs = true;
  masked.top_logprobs = 3;
  masked.make_mask = [](std::int64_t) {
    return [](std::span<const TokenId> generated, std::span<std::uint64_t> allowed) {
      allowed[0] = generated.size() % 2 == 0 ? 0b1010 : 0b100;
    };
  };
  const Listener listener = submit(*scheduler_, masked);
  listener.wait();
  std::vector<TokenId> tokens = masked.prompt;
  for (const Delta& delta : listener.deltas()) {
    ASSERT_TRUE(delta.id && delta.logprob);
    std::vector<float> logits(kFakeVocab);
    fill_logits(expected_digest(tokens, std::ssize(tokens) - 1, {full_kind()}), logits);
    long double sum = 0;
    for (const float logit : logits) sum += std::exp(static_cast<long double>(logit));
    const auto logprob = [&](TokenId id) {
      return static_cast<double>(logits[static_cast<std::size_t>(id)] - std::log(sum));
    };
    EXPECT_EQ(delta.logprob->id, *delta.id);
    EXPECT_NEAR(delta.logprob->logprob, logprob(*delta.id), 1e-6);
    ASSERT_EQ(delta.top_logprobs.size(), 3u);
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_NEAR(delta.top_logprobs[i].logprob, logprob(delta.top_logprobs[i].id), 1e-6);
      const auto better = std::ranges::count_if(logits, [&](float logit) {
        return logit > logits[static_cast<std::size_t>(delta.top_logprobs[i].id)];
      });
      EXPECT_LE(better, static_cast<std::ptrdiff_t>(i));
    }
    const bool even = (tokens.size() - masked.prompt.size()) % 2 == 0;
    EXPECT_TRUE(even ? *delta.id == 1 || *delta.id == 3 : *delta.id == 2);
    tokens.push_back(*delta.id);
  }
  EXPECT_EQ(tokens.size(), 30u);

  masked.make_mask = [](std::int64_t) { return [](auto, auto) {}; };
  const Listener none = submit(*scheduler_, masked);
  none.wait();
  EXPECT_NE(none.failure().find("mask"), std::string::npos);
}

TEST_F(SchedulerTest, DrawsASeedAndTellsIt) {
  start({});
  Request drawn = request(10, 20);
  drawn.draw_seed = true;
  const Listener first = submit(*scheduler_, drawn), second = submit(*scheduler_, drawn);
  first.wait();
  second.wait();
  EXPECT_NE(first.started().seed, second.started().seed);
  EXPECT_LT(first.started().seed, std::uint64_t{1} << 53);
  Request same = request(10, 20);
  same.sampling.seed = first.started().seed;
  const Listener again = submit(*scheduler_, same);
  again.wait();
  EXPECT_EQ(again.choice().ids, first.choice().ids);
}

TEST_F(SchedulerTest, NoTokensAreAnAnswerToo) {
  start({});
  Request none = request(100, 0);
  none.choices = 2;
  const Listener listener = submit(*scheduler_, none);
  listener.wait();
  for (std::int64_t choice = 0; choice < 2; ++choice) {
    EXPECT_EQ(listener.choice(choice).finished.reason, FinishReason::kLength);
    EXPECT_EQ(listener.choice(choice).finished.completion_tokens, 0);
  }
}

TEST_F(SchedulerTest, MeasuresItsSteps) {
  backend_.script.on_run = [this](const StepState&) { advance(7ms); };
  start({});
  submit(*scheduler_, request(10, 20)).wait();
  scheduler_->drain(Clock::time_point(1h));
  const SchedulerStats stats = settled_stats();
  EXPECT_EQ(stats.steps, 20);
  EXPECT_NEAR(stats.step_seconds, 0.14, 1e-9);
  EXPECT_EQ(stats.step_counts[3], 20);  // above 5 ms, at most 10
  EXPECT_EQ(stats.prompt_tokens, 10);
  EXPECT_EQ(stats.queued + stats.running + stats.streams, 0);
  EXPECT_EQ(stats.sessions_in_memory, 1);
}

}  // namespace
}  // namespace eider::serving
