#include "serving/batcher.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/check.h"
#include "runtime/memory_needs.h"

namespace eider::serving {
namespace {

// The value that Request::embedding asks for, as models name it (model/blocks.cpp).
std::optional<ValueId> find_final_norm(const Plan& plan) {
  const auto found = std::ranges::find(plan.values, "final_norm", &Value::name);
  if (found == plan.values.end()) return std::nullopt;
  return ValueId{static_cast<int>(found - plan.values.begin())};
}

Refusal invalid(const std::string& message) {
  return {Refusal::Kind::kInvalid, message, 0};
}

}  // namespace

Batcher::Batcher(Engine& engine, const Tokenizer& tokenizer, ThreadPool& pool,
                 const SchedulerOptions& options, std::unique_ptr<SessionDisk> disk)
    : engine_(engine),
      tokenizer_(tokenizer),
      pool_(pool),
      options_(options),
      final_norm_(find_final_norm(engine.model().plan)),
      pacer_(options.prefill_gap, options.max_streams, engine.options().max_batch_tokens,
             engine.model().plan.ops.size()),
      cache_(engine, std::move(disk)) {}

std::optional<Refusal> Batcher::check(const Request& request) const {
  const std::int64_t vocab_size = engine_.model().vocab_size;
  if (request.prompt.empty()) return invalid("the prompt is empty");
  for (const TokenId id : request.prompt) {
    if (id < 0 || id >= vocab_size)
      return invalid(fmt::format("token id {} is outside the model's vocabulary of {}", id, vocab_size));
  }
  if (request.choices < 1 || request.choices > options_.max_streams) {
    return invalid(fmt::format("{} choices are asked for; between 1 and {} can be computed at a time",
                               request.choices, options_.max_streams));
  }
  if (request.top_logprobs < 0) return invalid("top_logprobs must be 0 or more");
  if (request.embedding) {
    const std::string& why = engine_.model().pooling.refusal;
    if (!final_norm_ || !why.empty())
      return Refusal{Refusal::Kind::kUnsupported,
                     fmt::format("this model gives no embeddings{}{}", why.empty() ? "" : ": ", why), 0};
  }
  if (request.embedding && request.choices != 1) return invalid("a prompt has one embedding");
  if (const Status limits = request.limits.check(); !limits.ok()) return invalid(limits.error().message());
  const auto sampler = Sampler::create(request.sampling, vocab_size);
  if (!sampler.ok()) return invalid(sampler.error().message());

  const auto length = static_cast<std::int64_t>(request.prompt.size());
  if (length > engine_.options().context) {
    return Refusal{
        Refusal::Kind::kPromptTooLong,
        fmt::format("the prompt has {} tokens, and the context holds {}", length, engine_.options().context),
        0};
  }
  const KvPool& kv = engine_.kv_pool();
  const std::int64_t bytes = kv_bytes(kv.kinds(), kv.type(), length, engine_.options().max_batch_tokens);
  if (bytes > kv.limit_bytes()) {
    return Refusal{
        Refusal::Kind::kPromptTooLong,
        fmt::format("the prompt has {} tokens, which need more than the memory for the KV cache", length), 0};
  }
  return std::nullopt;
}

void Batcher::add(std::unique_ptr<Job> job) {
  job->scope = hash_scope(job->request.scope);
  waiting_.push_back(std::move(job));
}

void Batcher::end(RequestId id, FinishReason reason) {
  for (const auto& job : active_)
    if (job->id == id) end(*job, reason);
  for (const auto& job : waiting_)
    if (job->id == id) end(*job, reason);
  remove_ended();
}

void Batcher::end_all(FinishReason reason) {
  for (const auto& job : active_) end(*job, reason);
  for (const auto& job : waiting_) end(*job, reason);
  remove_ended();
}

bool Batcher::run_step() {
  const Clock::time_point begin = options_.now();
  const auto seconds = [&] { return std::chrono::duration<double>(options_.now() - begin).count(); };
  cache_.run_completions();
  end_overdue();
  begin_waiting();
  const std::int64_t answers = plan_answers();
  // Nobody waits for the next token: prompts can have a whole step.
  if (answers == 0 && prompts_.parts.empty())
    add_prompt_parts(step_.parts, engine_.options().max_batch_tokens - std::ssize(step_.parts));
  reserve(step_.parts);
  cache_.save_ahead();
  bool worked = !step_.parts.empty();
  if (worked) run(step_);
  remove_ended();
  if (answers > 0) pacer_.record_step(answers, prompt_seconds_, seconds());
  const double step_seconds = seconds();
  worked = run_prompts(answers) || worked;
  prompt_seconds_ = seconds() - step_seconds;
  remove_ended();
  if (worked) count_step(seconds());
  return worked;
}

void Batcher::end_overdue() {
  const auto overdue = [now = options_.now()](const Job& job) {
    return job.request.deadline && now >= *job.request.deadline;
  };
  for (const auto& job : active_)
    if (overdue(*job)) end(*job, FinishReason::kDeadline);
  for (const auto& job : waiting_)
    if (overdue(*job)) end(*job, FinishReason::kDeadline);
  remove_ended();
}

// First come, first served: who does not fit yet is not overtaken by who would.
void Batcher::begin_waiting() {
  for (const auto& job : active_)
    if (job->loads_later) begin(*job);
  while (!waiting_.empty() && has_room_for(*waiting_.front())) {
    active_.push_back(std::move(waiting_.front()));
    waiting_.pop_front();
    begin(*active_.back());
  }
}

// Whether places and memory are left beside what the active ones will need. Sessions that are only remembered
// give way, so they do not count; blocks that several share count for each, which errs on the safe side.
bool Batcher::has_room_for(const Job& job) const {
  if (active_.empty()) return true;
  if (short_of_memory_) return false;
  std::int64_t streams = job.request.choices;
  std::int64_t bytes = kv_bytes_of(job);
  for (const auto& other : active_) {
    streams += other->request.choices;
    bytes += kv_bytes_of(*other);
  }
  return streams <= options_.max_streams && bytes <= engine_.kv_pool().limit_bytes();
}

// What the tokens so far and the next one take, and a last block of each further choice.
std::int64_t Batcher::kv_bytes_of(const Job& job) const {
  std::size_t tokens = job.request.prompt.size();
  for (const Stream& stream : job.streams) tokens = std::max(tokens, stream.tokens().size());
  const KvPool& kv = engine_.kv_pool();
  std::int64_t bytes = kv_bytes(kv.kinds(), kv.type(), static_cast<std::int64_t>(tokens) + 1,
                                engine_.options().max_batch_tokens);
  for (int kind = 0; kind < static_cast<int>(kv.kinds().size()); ++kind)
    bytes += (job.request.choices - 1) * kv.block_bytes(kind);
  return bytes;
}

// Whether embeddings are made of the states of all tokens, and not of the last one's.
bool Batcher::pools_all() const {
  return final_norm_ && engine_.model().plan.value(*final_norm_).rows == Rows::kTokens;
}

// What may come from the cache: not the last token, whose logits or state are wanted. Nothing where an
// embedding folds all states: sessions do not hold those.
std::span<const TokenId> Batcher::reusable_tokens(Job& job) const {
  if (job.request.embedding && pools_all()) return {};
  const std::span<const TokenId> tokens = job.leader().tokens();
  return tokens.first(tokens.size() - 1);
}

void Batcher::begin(Job& job) {
  if (job.streams.empty()) {
    job.streams.reserve(static_cast<std::size_t>(job.request.choices));
    for (std::int64_t choice = 0; choice < job.request.choices; ++choice) {
      job.streams.emplace_back(job.request, choice, tokenizer_, engine_.model().vocab_size,
                               engine_.options().context);
    }
  }
  const auto done = [this, id = job.id] {
    const auto loaded = std::ranges::find(active_, id, [](const auto& active) { return active->id; });
    if (loaded != active_.end() && (*loaded)->loading) start(**loaded);
  };
  const auto loading = cache_.load(job.scope, reusable_tokens(job), live_sessions(), done);
  job.loads_later = loading == SessionCache::Loading::kLater;
  job.loading = loading != SessionCache::Loading::kNone;
  if (!job.loading) start(job);
}

void Batcher::start(Job& job) {
  job.loading = false;
  Stream& leader = job.leader();
  leader.session = cache_.take(job.scope, reusable_tokens(job), live_sessions());
  if (job.request.embedding) job.pool.emplace(engine_.model().pooling.pooling, engine_.model().hidden_size);
  if (leader.session->length() >= leader.prompt_tokens()) fork_others(job, leader);
  if (job.started) return;
  job.started = true;
  job.cached_tokens = leader.session->length();
  job.queued_ms = std::chrono::duration<double, std::milli>(options_.now() - job.submitted).count();
  counters_.prompt_tokens += leader.prompt_tokens();
  counters_.cached_tokens += job.cached_tokens;
  job.sink(Started{job.cached_tokens, job.request.sampling.seed, job.queued_ms});
}

std::vector<LiveSession> Batcher::live_sessions() const {
  std::vector<LiveSession> live;
  for (const auto& job : active_)
    for (const Stream& stream : job->streams)
      if (stream.session) live.push_back({&job->scope, &*stream.session});
  return live;
}

// The step gets the streams that have one token to go on with, running answers and such as begin; returns how
// many are running.
std::int64_t Batcher::plan_answers() {
  step_.parts.clear();
  std::int64_t answers = 0;
  for (const auto& job : active_) {
    for (Stream& stream : job->streams) {
      if (!stream.session || stream.rest().size() != 1) continue;
      step_.parts.push_back({job.get(), &stream, 1});
      if (stream.running()) ++answers;
    }
  }
  return answers;
}

// The prompts take turns at being the first to take of the budget; what one leaves the next one gets.
void Batcher::add_prompt_parts(std::vector<Part>& parts, std::int64_t budget) {
  const auto next = std::ranges::upper_bound(active_, turn_, {}, [](const auto& job) { return job->id; });
  const std::size_t first = static_cast<std::size_t>(next - active_.begin());
  bool is_first = true;
  for (std::size_t i = 0; i < active_.size(); ++i) {
    Job& job = *active_[(first + i) % active_.size()];
    for (Stream& stream : job.streams) {
      if (!stream.session || stream.rest().size() < 2 || budget <= 0) continue;
      std::int64_t tokens = std::min(budget, std::ssize(stream.rest()));
      // A step ends where the prompt does: that is a place to return to.
      const std::int64_t prompt_left = stream.prompt_tokens() - stream.session->length();
      if (prompt_left > 0) tokens = std::min(tokens, prompt_left);
      parts.push_back({&job, &stream, tokens});
      budget -= tokens;
      if (std::exchange(is_first, false)) turn_ = job.id;
    }
  }
}

// Gets the blocks that a step needs, the oldest request's first.
void Batcher::reserve(std::vector<Part>& parts) {
  for (Part& part : parts)
    if (!reserve(part)) part.tokens = 0;
  // A later part may have taken an earlier one's session.
  std::erase_if(parts, [](const Part& part) { return part.tokens == 0 || !part.stream->session; });
}

bool Batcher::reserve(const Part& part) {
  while (part.stream->session) {
    const Status status = part.stream->session->reserve(part.tokens);
    if (status.ok()) return true;
    switch (cache_.make_room()) {
      case SessionCache::Room::kMade:
        break;
      case SessionCache::Room::kComing:
        return false;
      case SessionCache::Room::kNone:
        if (!preempt_for(*part.job, status.error())) return false;
    }
  }
  return false;
}

// The youngest request gives up its blocks, so that the oldest always gets on. False where it is `job`.
bool Batcher::preempt_for(Job& job, const Error& shortage) {
  const auto holds_blocks = [](const std::unique_ptr<Job>& other) {
    return std::ranges::any_of(other->streams, [](const Stream& s) { return s.session.has_value(); });
  };
  const auto youngest = std::find_if(active_.rbegin(), active_.rend(), holds_blocks);
  EIDER_CHECK(youngest != active_.rend());
  Job& victim = **youngest;
  if (&victim == &job && std::ranges::count_if(active_, holds_blocks) == 1) {
    fail(job, shortage);
    return false;
  }
  wait_again(victim);
  return &victim != &job;
}

// Computes its tokens again when it is begun the next time, which gives the same bits.
void Batcher::wait_again(Job& job) {
  ++counters_.preemptions;
  short_of_memory_ = true;
  leave_prompts(job);
  for (Stream& stream : job.streams) stream.session.reset();
  const auto place = std::ranges::find(active_, &job, [](const auto& active) { return active.get(); });
  waiting_.push_front(std::move(*place));
  active_.erase(place);
}

// Goes on with a step of prompts, or begins one: to its end, or for a while where answers are running. False:
// there is none.
bool Batcher::run_prompts(std::int64_t answers) {
  if (prompts_.parts.empty()) {
    if (answers == 0) return false;
    std::vector<Part> parts;
    add_prompt_parts(parts, pacer_.prompt_tokens());
    reserve(parts);
    prompts_.parts = std::move(parts);
    if (prompts_.parts.empty()) return false;
  }
  const auto ended = forward_prompts(answers > 0 ? pacer_.seconds_for_prompts(answers)
                                                 : std::numeric_limits<double>::infinity());
  if (ended.ok() && !*ended) return true;
  if (answers > 0) pacer_.end_prompts(answers);  // else there is no pace to fit into
  Step step;
  std::swap(step, prompts_);
  settle(ended.ok() ? Status() : Status(ended.error()), step);
  return true;
}

// A step cannot go on without one of its sessions: what the others have of it is computed again.
void Batcher::leave_prompts(const Job& job) {
  if (std::ranges::none_of(prompts_.parts, [&](const Part& part) { return part.job == &job; })) return;
  engine_.abandon_part();
  prompts_.parts.clear();
}

SchedulerStats Batcher::stats() const {
  SchedulerStats stats = counters_;
  const KvPool& kv = engine_.kv_pool();
  const SessionCache::Stats cache = cache_.stats();
  stats.queued = std::ssize(waiting_);
  stats.running = std::ssize(active_);
  for (const auto& job : active_)
    stats.streams += std::ranges::count_if(job->streams, [](const Stream& s) { return !s.done(); });
  stats.kv_bytes = kv.bytes_in_use();
  stats.kv_allocated_bytes = kv.bytes_allocated();
  stats.sessions_in_memory = cache.sessions;
  stats.sessions_on_disk = cache.on_disk;
  stats.disk_bytes = cache.disk_bytes;
  stats.dropped_sessions = cache.dropped;
  stats.saved_sessions = cache.saved;
  stats.loaded_sessions = cache.loaded;
  stats.damaged_files = cache.damaged_files;
  return stats;
}

}  // namespace eider::serving
