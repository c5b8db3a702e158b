#include "serving/stream.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "runtime/log_softmax.h"

namespace eider::serving {
namespace {

Sampler make_sampler(SamplerOptions options, std::int64_t choice, std::int64_t vocab_size) {
  options.choice = static_cast<std::uint32_t>(choice);
  auto sampler = Sampler::create(options, vocab_size);
  EIDER_CHECK(sampler.ok());
  return std::move(sampler).value();
}

double milliseconds(Clock::duration duration) {
  return std::chrono::duration<double, std::milli>(duration).count();
}

}  // namespace

Stream::Stream(const Request& request, std::int64_t choice, const Tokenizer& tokenizer,
               std::int64_t vocab_size, std::int64_t context)
    : choice_(choice),
      prompt_tokens_(static_cast<std::int64_t>(request.prompt.size())),
      tokens_(request.prompt),
      sampler_(make_sampler(request.sampling, choice, vocab_size)),
      // One token may be sampled at the context's very end.
      answer_(tokenizer, begins_text(tokenizer, request.prompt), request.limits,
              context - prompt_tokens_ + 1) {
  if (request.make_mask) mask_ = request.make_mask(choice);
  if (mask_) allowed_.resize(static_cast<std::size_t>(vocab_size + 63) / 64);
  if (request.logprobs) top_logprobs_ = static_cast<std::size_t>(request.top_logprobs);
}

void Stream::sample(std::span<const float> logits) {
  logits_hash_.add(logits);
  next_.reset();
  if (mask_) {
    std::ranges::fill(allowed_, 0);
    mask_(answer_.ids(), allowed_);
    // Bits beyond the vocabulary stand for nothing.
    if (const std::size_t last = logits.size() % 64; last != 0)
      allowed_.back() &= (std::uint64_t{1} << last) - 1;
    if (std::ranges::max(allowed_) == 0) return;
  }
  next_ = sampler_.sample(logits, session->tokens(), session->length(), allowed_);
  if (top_logprobs_) look_up_logprobs(logits);
}

void Stream::look_up_logprobs(std::span<const float> logits) {
  const LogSoftmax probabilities(logits);
  const auto look_up = [&](TokenId id) {
    return TokenLogprob{id, -probabilities.negative_log_likelihood(id)};
  };
  logprob_ = look_up(*next_);
  std::vector<TokenId> ids(logits.size());
  std::iota(ids.begin(), ids.end(), TokenId{0});
  const auto logit = [&](TokenId id) { return logits[static_cast<std::size_t>(id)]; };
  const auto end = ids.begin() + static_cast<std::ptrdiff_t>(std::min(*top_logprobs_, ids.size()));
  std::partial_sort(ids.begin(), end, ids.end(),
                    [&](TokenId a, TokenId b) { return logit(a) != logit(b) ? logit(a) > logit(b) : a < b; });
  top_.clear();
  std::transform(ids.begin(), end, std::back_inserter(top_), look_up);
}

Result<Delta> Stream::advance(Clock::time_point now) {
  if (!next_) return error("no token may follow: the mask of choice {} allows none", choice_);
  if (generated() == 0) first_token_ = now;
  last_token_ = now;
  tokens_.push_back(*next_);
  Delta delta;
  delta.choice = choice_;
  delta.id = next_;
  delta.text = answer_.push(*next_);
  delta.logprob = logprob_;
  delta.top_logprobs = top_;
  return delta;
}

Finished Stream::finished(Clock::time_point submitted) const {
  Finished finished;
  finished.choice = choice_;
  finished.reason = answer_.finish_reason();
  finished.stop_string = answer_.stop_string();
  finished.prompt_tokens = prompt_tokens_;
  finished.completion_tokens = generated();
  finished.logits_hash = logits_hash_.value();
  if (generated() > 0) finished.ttft_ms = milliseconds(first_token_ - submitted);
  if (generated() > 1)
    finished.tpot_ms = milliseconds(last_token_ - first_token_) / static_cast<double>(generated() - 1);
  return finished;
}

}  // namespace eider::serving
