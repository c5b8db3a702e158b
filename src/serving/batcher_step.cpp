// The part of Batcher that runs a step and hands its outcome to the requests.
#include <algorithm>
#include <atomic>
#include <iterator>

#include "base/check.h"
#include "serving/batcher.h"

namespace eider::serving {

// A step that fails is run again part by part, so that a failure ends only the request it belongs to.
void Batcher::run(std::span<Part> parts) {
  const Status status = forward(parts);
  if (status.ok()) return absorb(parts);
  if (parts.size() == 1) return fail(*parts[0].job, status.error());
  for (Part& part : parts)
    if (!part.job->ended) run({&part, 1});
}

Status Batcher::forward(std::span<const Part> parts) {
  chunks_.clear();
  bool embeds = false;
  for (const Part& part : parts) {
    // Every part's last logits are wanted, though not all are sampled from: a value that is not finite is
    // then found in the step that made it, before it lies in the KV cache.
    chunks_.push_back({&*part.stream->session,
                       part.stream->rest().first(static_cast<std::size_t>(part.tokens)),
                       LogitsWanted::kLast});
    embeds = embeds || (part.job->request.embedding && part.tokens == std::ssize(part.stream->rest()));
  }
  if (!embeds) return engine_.forward(chunks_);
  const auto keep_final_norm = [&](const Op&, ValueId id, const void* data, std::int64_t rows) {
    if (id != *final_norm_) return;
    const auto* values = static_cast<const float*>(data);
    final_norm_rows_.assign(values, values + rows * engine_.model().hidden_size);
  };
  const Observer observer(keep_final_norm);
  return engine_.forward(chunks_, &observer);
}

void Batcher::absorb(std::span<Part> parts) {
  sampled_.clear();
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto& [job, stream, tokens] = parts[i];
    const auto row = static_cast<std::int64_t>(i);
    if (job->ended) continue;
    if (stream->session->length() == stream->prompt_tokens()) {
      stream->session->mark_prompt_end();
      fork_others(*job, *stream);
    }
    if (!stream->rest().empty()) continue;
    if (job->request.embedding)
      embed(*job, *stream, row);
    else if (stream->wants_none())
      end(*job, FinishReason::kLength);
    else
      sampled_.push_back({&parts[i], row});
  }
  sample();
  const Clock::time_point now = options_.now();
  for (const Sampled& sampled : sampled_)
    if (!sampled.part->job->ended) emit(*sampled.part->job, *sampled.part->stream, now);
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

void Batcher::emit(Job& job, Stream& stream, Clock::time_point now) {
  auto delta = stream.advance(now);
  if (!delta.ok()) return fail(job, delta.error());
  ++counters_.generated_tokens;
  job.sink(std::move(*delta));
  if (stream.done()) finish(job, stream);
}

void Batcher::embed(Job& job, Stream& stream, std::int64_t row) {
  const auto width = static_cast<std::size_t>(engine_.model().hidden_size);
  const auto state = std::span(final_norm_rows_).subspan(static_cast<std::size_t>(row) * width, width);
  cache_.keep(job.scope, std::move(*stream.session));
  stream.session.reset();
  job.ended = true;
  job.sink(Embedded{{state.begin(), state.end()}, stream.prompt_tokens(), job.cached_tokens, job.queued_ms});
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
    ++(counters_.*job->outcome);
    ended_streams_ += job->request.choices;
    short_of_memory_ = false;
    return true;
  };
  std::erase_if(active_, ended);
  std::erase_if(waiting_, ended);
}

void Batcher::record_step(std::int64_t answers, std::int64_t prompt_tokens, double seconds) {
  pacer_.record(answers, prompt_tokens, seconds);
  const auto bucket = std::ranges::lower_bound(kStepSecondsBounds, seconds);
  ++counters_.step_counts[static_cast<std::size_t>(bucket - std::begin(kStepSecondsBounds))];
  ++counters_.steps;
  counters_.step_seconds += seconds;
}

}  // namespace eider::serving
