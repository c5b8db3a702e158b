// The part of Batcher that runs a step and hands its outcome to the requests.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <iterator>

#include "base/check.h"
#include "serving/batcher.h"

namespace eider::serving {

// forward(observer) for the step's chunks, with what keeps the values that embeddings are made of.
template <class Forward>
auto Batcher::compute(Step& step, Forward forward) {
  step.chunks.clear();
  bool embeds = false;
  for (const Part& part : step.parts) {
    // Every part's last logits are wanted, though not all are sampled from: a value that is not finite is
    // then found in the step that made it, before it lies in the KV cache.
    step.chunks.push_back({&*part.stream->session,
                           part.stream->rest().first(static_cast<std::size_t>(part.tokens)),
                           LogitsWanted::kLast});
    const bool is_last = part.tokens == std::ssize(part.stream->rest());
    embeds = embeds || (part.job->request.embedding && (pools_all() || is_last));
  }
  if (!embeds) return forward(nullptr);
  const auto keep_final_norm = [&](const Op&, ValueId id, const void* data, std::int64_t rows) {
    if (id != *final_norm_) return;
    const auto* values = static_cast<const float*>(data);
    step.final_norm.assign(values, values + rows * engine_.model().hidden_size);
  };
  const Observer observer(keep_final_norm);
  return forward(&observer);
}

void Batcher::run(Step& step) {
  settle(compute(step, [&](const Observer* observer) { return engine_.forward(step.chunks, observer); }),
         step);
}

// A step that fails is run again part by part, so that a failure ends only the request it belongs to.
void Batcher::settle(const Status& status, Step& step) {
  if (status.ok()) return absorb(step);
  if (step.parts.size() == 1) return fail(*step.parts[0].job, status.error());
  for (const Part& part : step.parts) {
    if (part.job->ended) continue;
    Step alone{{part}, {}, {}};
    run(alone);
  }
}

// Goes on with the prompts' step as long as its next operation is expected to end in time. True: it has
// ended.
Result<bool> Batcher::forward_prompts(double seconds) {
  std::int64_t tokens = 0;
  for (const Part& part : prompts_.parts) tokens += part.tokens;
  const Clock::time_point begin = options_.now();
  Clock::time_point last = begin;
  const auto pause = [&](std::size_t next) {
    const Clock::time_point now = options_.now();
    pacer_.record_operation(next - 1, tokens, std::chrono::duration<double>(now - last).count());
    last = now;
    return std::chrono::duration<double>(now - begin).count() + pacer_.operation_seconds(next, tokens) >
           seconds;
  };
  return compute(prompts_, [&](const Observer* observer) {
    return engine_.forward_part(prompts_.chunks, pause, observer);
  });
}

// The kept rows are of all tokens where the model pools all, else of each part's last, of which only the
// prompt's last counts: steps before that one keep none.
void Batcher::pool_states(const Step& step) {
  const auto width = static_cast<std::size_t>(engine_.model().hidden_size);
  std::size_t row = 0;
  for (const Part& part : step.parts) {
    const std::size_t rows = pools_all() ? static_cast<std::size_t>(part.tokens) : 1;
    Job& job = *part.job;
    if (!job.ended && job.pool && (pools_all() || part.stream->rest().empty()))
      for (std::size_t i = 0; i < rows; ++i)
        job.pool->add(std::span(step.final_norm).subspan((row + i) * width, width));
    row += rows;
  }
}

void Batcher::absorb(Step& step) {
  pool_states(step);
  sampled_.clear();
  for (std::size_t i = 0; i < step.parts.size(); ++i) {
    const auto& [job, stream, tokens] = step.parts[i];
    if (job->ended) continue;
    if (stream->session->length() == stream->prompt_tokens()) {
      stream->session->mark_prompt_end();
      fork_others(*job, *stream);
    }
    if (!stream->rest().empty()) continue;
    if (job->request.embedding)
      embed(*job, *stream);
    else if (stream->wants_none())
      end(*job, FinishReason::kLength);
    else
      sampled_.push_back({&step.parts[i], static_cast<std::int64_t>(i), {}});
  }
  sample();
  const Clock::time_point now = options_.now();
  for (Sampled& sampled : sampled_)
    if (!sampled.part->job->ended) sampled.delta = sampled.part->stream->advance(now);
  // All at once: whom they wake takes a core.
  for (Sampled& sampled : sampled_)
    if (sampled.delta) emit(sampled);
}

// The other choices go on from the prompt's last token, which each computes once more for its logits.
void Batcher::fork_others(Job& job, const Stream& leader) {
  for (Stream& other : job.streams)
    if (!other.done() && !other.session) other.session = leader.session->fork(leader.prompt_tokens() - 1);
}

// A vocabulary takes long enough to sample from to share the streams out over the threads.
void Batcher::sample() {
  std::atomic<std::size_t> next = 0;
  const auto sample_some = [&](int) {
    for (std::size_t i = next++; i < sampled_.size(); i = next++)
      sampled_[i].part->stream->sample(engine_.logits(sampled_[i].row));
  };
  if (sampled_.size() > 1)
    pool_.run(sample_some);
  else
    sample_some(0);
}

void Batcher::emit(Sampled& sampled) {
  auto& [job, stream, tokens] = *sampled.part;
  if (!stream->session) return;  // another choice's failure has ended the request
  if (!sampled.delta->ok()) return fail(*job, sampled.delta->error());
  ++counters_.generated_tokens;
  job->sink(std::move(**sampled.delta));
  if (stream->done()) finish(*job, *stream);
}

void Batcher::embed(Job& job, Stream& stream) {
  std::vector<float> state = job.pool->embedding();
  // The logits were looked at of the last token alone.
  if (!std::ranges::all_of(state, [](float value) { return std::isfinite(value); }))
    return fail(job,
                error("the states of the prompt's tokens are not finite numbers; the model's weights may "
                      "be damaged"));
  cache_.keep(job.scope, std::move(*stream.session));
  stream.session.reset();
  job.ended = true;
  job.sink(Embedded{std::move(state), stream.prompt_tokens(), job.cached_tokens, job.queued_ms});
}

// Tells of a choice that is done, and remembers its session.
void Batcher::finish(Job& job, Stream& stream) {
  if (stream.session) {
    cache_.keep(job.scope, std::move(*stream.session));
    stream.session.reset();
  }
  job.ended = std::ranges::all_of(job.streams, &Stream::done);
  Finished finished = stream.finished(job.submitted);
  finished.cached_tokens = job.cached_tokens;
  finished.queued_ms = job.queued_ms;
  job.sink(std::move(finished));
}

void Batcher::end(Job& job, FinishReason reason) {
  if (job.ended) return;
  if (reason == FinishReason::kCancelled) job.outcome = &SchedulerStats::cancelled;
  if (reason == FinishReason::kDeadline) job.outcome = &SchedulerStats::out_of_time;
  for (std::int64_t choice = 0; job.streams.empty() && choice < job.request.choices; ++choice) {
    Finished finished;
    finished.choice = choice;
    finished.reason = reason;
    finished.prompt_tokens = std::ssize(job.request.prompt);
    job.sink(std::move(finished));
  }
  for (std::int64_t choice = 0; choice < std::ssize(job.streams); ++choice) {
    Stream& stream = job.streams[static_cast<std::size_t>(choice)];
    if (stream.done()) continue;
    Delta held{choice, stream.finish(reason), {}, {}, {}};
    if (!held.text.empty()) job.sink(std::move(held));
    finish(job, stream);
  }
  job.ended = true;
}

void Batcher::fail(Job& job, const Error& failure) {
  for (Stream& stream : job.streams) stream.session.reset();  // what they hold may be what is wrong
  job.ended = true;
  job.outcome = &SchedulerStats::failed;
  job.sink(Failed{failure.message()});
}

void Batcher::remove_ended() {
  const auto ended = [this](const std::unique_ptr<Job>& job) {
    if (!job->ended) return false;
    leave_prompts(*job);
    ++(counters_.*job->outcome);
    ended_streams_ += job->request.choices;
    short_of_memory_ = false;
    return true;
  };
  std::erase_if(active_, ended);
  std::erase_if(waiting_, ended);
}

void Batcher::count_step(double seconds) {
  const auto bucket = std::ranges::lower_bound(kStepSecondsBounds, seconds);
  ++counters_.step_counts[static_cast<std::size_t>(bucket - std::begin(kStepSecondsBounds))];
  ++counters_.steps;
  counters_.step_seconds += seconds;
}

}  // namespace eider::serving
