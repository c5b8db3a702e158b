#include "runtime/generation.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace eider {
namespace {

// Whether the first generated token begins the text: only control tokens stand before it.
bool begins_text(const Session& session, const Tokenizer& tokenizer, std::span<const TokenId> prompt) {
  return session.length() == 0 &&
         std::all_of(prompt.begin(), prompt.end(), [&](TokenId id) { return tokenizer.bytes(id).empty(); });
}

double seconds(std::chrono::steady_clock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

}  // namespace

const char* finish_reason_name(FinishReason reason) {
  switch (reason) {
    case FinishReason::kStop:
      return "stop";
    case FinishReason::kLength:
      return "length";
    case FinishReason::kCancelled:
      return "cancelled";
  }
  check_failed(__FILE__, __LINE__, "a FinishReason outside its list");
}

Result<Generation> Generation::start(Engine& engine, Session& session, const Tokenizer& tokenizer,
                                     Sampler sampler, std::vector<TokenId> prompt, GenerationLimits limits) {
  if (prompt.empty()) return error("the prompt is empty: give at least one token to continue from");
  EIDER_TRY_STATUS(session.check_room(static_cast<std::int64_t>(prompt.size())));
  for (const std::string& stop : limits.stop) {
    if (stop.empty()) return error("a stop string is empty: it would end every answer before it begins");
  }
  return Generation(engine, session, tokenizer, std::move(sampler), std::move(prompt), std::move(limits));
}

Generation::Generation(Engine& engine, Session& session, const Tokenizer& tokenizer, Sampler sampler,
                       std::vector<TokenId> prompt, GenerationLimits limits)
    : engine_(&engine),
      session_(&session),
      tokenizer_(&tokenizer),
      sampler_(std::move(sampler)),
      prompt_(std::move(prompt)),
      limits_(std::move(limits)),
      detokenizer_(tokenizer, begins_text(session, tokenizer, prompt_)),
      stop_strings_(limits_.stop) {
  // One token may be sampled at the context's very end, so that a step of the loop never has to grow the
  // list.
  std::int64_t most = session.max_context() - session.length() - prompt_tokens() + 1;
  if (limits_.max_tokens >= 0) most = std::min(most, limits_.max_tokens);
  ids_.reserve(static_cast<std::size_t>(most));
}

Result<std::string> Generation::advance() {
  EIDER_CHECK(!done());
  if (cancelled_) return finish(FinishReason::kCancelled);
  if (state_ == State::kPrefill) return prefill_chunk();

  const Chunk chunk{session_, {&ids_.back(), 1}, LogitsWanted::kLast};
  EIDER_TRY_STATUS(engine_->forward({&chunk, 1}));
  return sample_token();
}

Result<std::string> Generation::prefill_chunk() {
  if (prefilled_ == 0) started_ = Clock::now();
  const auto done = static_cast<std::size_t>(prefilled_);
  const auto count =
      std::min(prompt_.size() - done, static_cast<std::size_t>(engine_->options().max_batch_tokens));
  EIDER_TRY_STATUS(engine_->prefill(*session_, std::span(prompt_).subspan(done, count)));
  prefilled_ += static_cast<std::int64_t>(count);
  if (prefilled_ < prompt_tokens()) return std::string();

  session_->mark_prompt_end();
  state_ = State::kDecode;
  if (limits_.max_tokens == 0) return finish(FinishReason::kLength);
  return sample_token();
}

// Samples from the logits of the step just run: another generation may use the engine before the next
// advance().
std::string Generation::sample_token() {
  const std::span<const float> logits = engine_->logits();
  logits_hash_.add(logits);
  const TokenId id = sampler_.sample(logits, session_->tokens(), session_->length());
  last_token_ = Clock::now();
  if (ids_.empty()) first_token_ = last_token_;
  ids_.push_back(id);

  if (tokenizer_->ends_turn(id) && !limits_.ignore_eos) return finish(FinishReason::kStop);
  std::string text = stop_strings_.push(detokenizer_.push(id));
  if (stop_strings_.found()) return text + finish(FinishReason::kStop);
  const bool enough = limits_.max_tokens >= 0 && static_cast<std::int64_t>(ids_.size()) >= limits_.max_tokens;
  if (enough || !session_->check_room(1).ok()) return text + finish(FinishReason::kLength);
  return text;
}

// Ends the generation and returns the text that was held back.
std::string Generation::finish(FinishReason reason) {
  state_ = State::kDone;
  finish_reason_ = reason;
  std::string text = stop_strings_.push(detokenizer_.finish());
  return text + stop_strings_.finish();
}

Generation::Timing Generation::timing() const {
  Timing timing;
  if (ids_.empty()) return timing;
  const double first = seconds(first_token_ - started_);
  timing.ttft_ms = first * 1e3;
  if (first > 0) timing.prompt_tok_s = static_cast<double>(prompt_.size()) / first;
  const double rest = seconds(last_token_ - first_token_);
  if (ids_.size() > 1 && rest > 0) {
    const auto tokens = static_cast<double>(ids_.size() - 1);
    timing.decode_tok_s = tokens / rest;
    timing.tpot_ms = rest / tokens * 1e3;
  }
  return timing;
}

}  // namespace eider
