// Generation: the decode loop as a state machine: prefill -> decode -> done. Each advance() does one bounded
// piece of work and reports it, so that a caller can show progress, stream text, cancel, or interleave
// several.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "runtime/answer.h"
#include "runtime/engine.h"
#include "runtime/logits_hash.h"
#include "runtime/sampler.h"
#include "text/tokenizer.h"

namespace eider {

class Generation {
 public:
  enum class State : std::uint8_t { kPrefill, kDecode, kDone };

  /// Will append `prompt` to `session` and answer it. References must outlive this object. Fails where the
  /// prompt is empty (there would be no logits to sample from), does not fit the session's context, or a stop
  /// string is empty.
  static Result<Generation> start(Engine& engine, Session& session, const Tokenizer& tokenizer,
                                  Sampler sampler, std::vector<TokenId> prompt, GenerationLimits limits);

  /// One prefill chunk (the last one samples the first token too), or one token. Returns the text that became
  /// certain, whole UTF-8 characters, may be empty. After an error the generation is over; not to be called
  /// once done().
  Result<std::string> advance();
  /// The next advance() ends with kCancelled; what was held back is still given out.
  void cancel() { cancelled_ = true; }

  State state() const { return state_; }
  bool done() const { return state_ == State::kDone; }
  FinishReason finish_reason() const { return answer_.finish_reason(); }
  std::int64_t prompt_tokens() const { return static_cast<std::int64_t>(prompt_.size()); }
  std::int64_t prefilled() const { return prefilled_; }
  /// Sampled ids, the one that ended the turn included.
  std::span<const TokenId> ids() const { return answer_.ids(); }
  /// XXH3-64 of the fp32 logit rows that were sampled from, in order.
  std::uint64_t logits_hash() const { return logits_hash_.value(); }

  /// Zero where nothing was measured.
  struct Timing {
    double ttft_ms = 0;       ///< start of the first advance() to the first sampled token
    double prompt_tok_s = 0;  ///< prompt tokens over the same time
    double decode_tok_s = 0;  ///< tokens after the first over the time since the first
    double tpot_ms = 0;       ///< mean time per output token after the first
  };
  Timing timing() const;

 private:
  using Clock = std::chrono::steady_clock;

  Generation(Engine& engine, Session& session, const Tokenizer& tokenizer, Sampler sampler,
             std::vector<TokenId> prompt, GenerationLimits limits);
  Result<std::string> prefill_chunk();
  std::string sample_token();
  std::string finish(FinishReason reason);

  Engine* engine_;
  Session* session_;
  Sampler sampler_;
  std::vector<TokenId> prompt_;
  Answer answer_;
  LogitsHash logits_hash_;

  State state_ = State::kPrefill;
  bool cancelled_ = false;
  std::int64_t prefilled_ = 0;
  Clock::time_point started_, first_token_, last_token_;
};

}  // namespace eider
