// Stream: one answer being computed: its tokens, the session that holds some of them, and what is sampled.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/answer.h"
#include "runtime/logits_hash.h"
#include "runtime/sampler.h"
#include "runtime/session.h"
#include "serving/request.h"
#include "text/tokenizer.h"

namespace eider::serving {

class Stream {
 public:
  /// Choice `choice` of `request`, whose settings are known to be right. `context`: most tokens of a session.
  Stream(const Request& request, std::int64_t choice, const Tokenizer& tokenizer, std::int64_t vocab_size,
         std::int64_t context);

  /// The prompt, and what was sampled.
  std::span<const TokenId> tokens() const { return tokens_; }
  /// Those that the session does not hold yet; not empty while the answer goes on.
  std::span<const TokenId> rest() const {
    return tokens().subspan(static_cast<std::size_t>(session->length()));
  }
  std::int64_t prompt_tokens() const { return prompt_tokens_; }
  std::int64_t generated() const { return static_cast<std::int64_t>(answer_.ids().size()); }
  /// Whether the next step gives its next token, and not its first.
  bool running() const { return session && generated() > 0 && rest().size() == 1; }

  /// Draws the next token, and looks up what was asked about it. `logits` are those of the last token, which
  /// the session holds. On any thread.
  void sample(std::span<const float> logits);
  /// What sample() gave becomes part of the answer. Fails where the mask allowed nothing.
  Result<Delta> advance(Clock::time_point now);

  /// Whether there is nothing to sample.
  bool wants_none() const { return answer_.wants_none(); }
  bool done() const { return answer_.done(); }
  /// Ends the answer; the text that was held back.
  std::string finish(FinishReason reason) { return answer_.finish(reason); }
  /// What is known of it here.
  Finished finished(Clock::time_point submitted) const;

  /// None: it waits for one.
  std::optional<Session> session;

 private:
  void look_up_logprobs(std::span<const float> logits);

  std::int64_t choice_;
  std::int64_t prompt_tokens_;
  std::vector<TokenId> tokens_;
  Sampler sampler_;
  Answer answer_;
  LogitsHash logits_hash_;
  TokenMask mask_;
  std::vector<std::uint64_t> allowed_;  // room for a bit for each token, where there is a mask
  std::optional<std::size_t> top_logprobs_;

  // Of the last sample().
  std::optional<TokenId> next_;
  std::optional<TokenLogprob> logprob_;
  std::vector<TokenLogprob> top_;

  Clock::time_point first_token_, last_token_;
};

}  // namespace eider::serving
