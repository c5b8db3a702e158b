#include "runtime/generation.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace eider {
namespace {

double seconds(std::chrono::steady_clock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

}  // namespace

Result<Generation> Generation::start(Engine& engine, Session& session, const Tokenizer& tokenizer,
                                     Sampler sampler, std::vector<TokenId> prompt, GenerationLimits limits) {
  if (prompt.empty()) return error("the prompt is empty: give at least one token to continue from");
  EIDER_TRY_STATUS(session.check_room(static_cast<std::int64_t>(prompt.size())));
  EIDER_TRY_STATUS(limits.check());
  return Generation(engine, session, tokenizer, std::move(sampler), std::move(prompt), std::move(limits));
}

Generation::Generation(Engine& engine, Session& session, const Tokenizer& tokenizer, Sampler sampler,
                       std::vector<TokenId> prompt, GenerationLimits limits)
    : engine_(&engine),
      session_(&session),
      sampler_(std::move(sampler)),
      prompt_(std::move(prompt)),
      // One token may be sampled at the context's very end.
      answer_(tokenizer, session.length() == 0 && begins_text(tokenizer, prompt_), std::move(limits),
              session.max_context() - session.length() - prompt_tokens() + 1) {}

Result<std::string> Generation::advance() {
  EIDER_CHECK(!done());
  if (cancelled_) return finish(FinishReason::kCancelled);
  if (state_ == State::kPrefill) return prefill_chunk();

  const Chunk chunk{session_, ids().last(1), LogitsWanted::kLast};
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
  if (answer_.wants_none()) return finish(FinishReason::kLength);
  return sample_token();
}

// Samples from the logits of the step just run: another generation may use the engine before the next
// advance().
std::string Generation::sample_token() {
  const std::span<const float> logits = engine_->logits();
  logits_hash_.add(logits);
  const TokenId id = sampler_.sample(logits, session_->tokens(), session_->length());
  last_token_ = Clock::now();
  if (ids().empty()) first_token_ = last_token_;
  std::string text = answer_.push(id);
  if (answer_.done()) state_ = State::kDone;
  return text;
}

std::string Generation::finish(FinishReason reason) {
  state_ = State::kDone;
  return answer_.finish(reason);
}

Generation::Timing Generation::timing() const {
  Timing timing;
  if (ids().empty()) return timing;
  const double first = seconds(first_token_ - started_);
  timing.ttft_ms = first * 1e3;
  if (first > 0) timing.prompt_tok_s = static_cast<double>(prompt_.size()) / first;
  const double rest = seconds(last_token_ - first_token_);
  if (ids().size() > 1 && rest > 0) {
    const auto tokens = static_cast<double>(ids().size() - 1);
    timing.decode_tok_s = tokens / rest;
    timing.tpot_ms = rest / tokens * 1e3;
  }
  return timing;
}

}  // namespace eider
