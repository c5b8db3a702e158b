// Generation: the decode loop as a state machine: prefill -> decode -> done. Each advance() does one bounded piece of
// work and reports it, so that a caller can show progress, stream text, cancel, or interleave several.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "runtime/engine.h"
#include "runtime/sampler.h"
#include "text/detokenizer.h"
#include "text/tokenizer.h"

namespace eider {

struct GenerationLimits {
  std::int64_t max_tokens = -1;  ///< -1: until the model ends or the context is full
  std::vector<std::string> stop;  ///< text that ends the answer and is not part of it
  bool ignore_eos = false;
};

enum class FinishReason : std::uint8_t { kStop, kLength, kCancelled };
const char* finish_reason_name(FinishReason reason);  // "stop", "length", "cancelled"

class Generation {
 public:
  enum class State : std::uint8_t { kPrefill, kDecode, kDone };

  /// Continues `session` with `prompt` (not empty unless the session's last step left logits is not supported: refuse).
  /// All references must outlive this object.
  static Result<Generation> start(Engine& engine, Session& session, const Tokenizer& tokenizer, Sampler sampler,
                                  std::vector<TokenId> prompt, GenerationLimits limits);

  /// One prefill chunk, or one token. Returns the text that became certain (may be empty).
  Result<std::string> advance();
  /// The next advance() ends with kCancelled; what was held back is still given out.
  void cancel() { cancelled_ = true; }

  State state() const { return state_; }
  bool done() const { return state_ == State::kDone; }
  FinishReason finish_reason() const { return finish_reason_; }
  std::int64_t prompt_tokens() const { return static_cast<std::int64_t>(prompt_.size()); }
  std::int64_t prefilled() const { return prefilled_; }
  /// Sampled ids, the one that ended the turn included.
  std::span<const TokenId> ids() const { return ids_; }
  /// XXH3-64 of the fp32 logit rows that were sampled from, in order.
  std::uint64_t logits_hash() const;

  struct Timing {
    double ttft_ms = 0;       ///< start of the first advance() to the first sampled token
    double prompt_tok_s = 0;
    double decode_tok_s = 0;  ///< tokens after the first over the time since the first
    double tpot_ms = 0;       ///< mean time per output token after the first
  };
  Timing timing() const;

  // The rest is private state; see generation.cpp.
};

}  // namespace eider
