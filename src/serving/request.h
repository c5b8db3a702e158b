// What a client asks of the scheduler, and the events it hears back. Token ids in, ids and text out: it knows
// nothing of HTTP, JSON or chat templates.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/token_id.h"
#include "runtime/generation.h"
#include "runtime/sampler.h"

namespace eider::serving {

using Clock = std::chrono::steady_clock;
using RequestId = std::uint64_t;

/// Sets the bits of the tokens that may follow `generated`, the ids of one choice so far: token i is bit i %
/// 64 of allowed[i / 64]. All bits are 0 before. Called once before each token of its choice, each time with
/// one id more, from any thread of the engine's pool; two choices' masks may be called at the same time. To
/// set no bit is an error that ends the request.
using TokenMask = std::function<void(std::span<const TokenId> generated, std::span<std::uint64_t> allowed)>;

struct Request {
  std::vector<TokenId> prompt;  ///< at least one id
  /// `choice` is filled in for each answer.
  SamplerOptions sampling;
  /// No seed given: the scheduler draws one, which Started tells.
  bool draw_seed = false;
  GenerationLimits limits;
  std::int64_t choices = 1;       ///< answers (n): one prefill, then each goes its own way
  bool logprobs = false;          ///< of each sampled token
  std::int64_t top_logprobs = 0;  ///< and of so many most likely ones
  bool embedding = false;         ///< instead of answers: the prompt's states, pooled as the model says
  /// Who may see each other's cache: prompts of different scopes never share an entry. It is kept on disk as
  /// a hash that is not cryptographic, so give no secret itself but a digest of it.
  std::string scope;
  std::optional<Clock::time_point> deadline;  ///< ends with FinishReason::kDeadline, also while waiting
  /// Makes the mask of a choice; null: every token may come.
  std::function<TokenMask(std::int64_t choice)> make_mask;
};

/// A seed for Request::sampling, of 53 random bits, which every JSON reader keeps.
std::uint64_t draw_seed();

struct TokenLogprob {
  TokenId id = 0;
  double logprob = 0;  ///< natural logarithm, of the model's own distribution: before sampler and mask
};

/// The prompt's computation begins. Sent once, again not even where memory gets short and it begins anew.
struct Started {
  std::int64_t cached_tokens = 0;  ///< of the prompt, taken from the cache
  std::uint64_t seed = 0;          ///< of the draws
  double queued_ms = 0;            ///< since submit()
};

/// One sampled token, or (without an id) text that was held back until its choice ended.
struct Delta {
  std::int64_t choice = 0;
  std::string text;                        ///< that became certain: whole UTF-8 characters, may be empty
  std::optional<TokenId> id;               ///< also of the token that ends the turn, whose text is empty
  std::optional<TokenLogprob> logprob;     ///< where asked for
  std::vector<TokenLogprob> top_logprobs;  ///< most likely first, lowest id first on ties
};

/// A choice ended.
struct Finished {
  std::int64_t choice = 0;
  FinishReason reason = FinishReason::kStop;
  std::optional<std::string> stop_string;  ///< the one that ended it
  std::int64_t prompt_tokens = 0;
  std::int64_t cached_tokens = 0;
  std::int64_t completion_tokens = 0;  ///< of this choice: sampled ids, the one that ends the turn included
  std::uint64_t logits_hash = 0;       ///< as Generation::logits_hash()
  double queued_ms = 0;
  double ttft_ms = 0;  ///< submit() to the first token; 0: there was none
  double tpot_ms = 0;  ///< mean time per token after the first; 0: there were none
};

/// Answers a request with Request::embedding.
struct Embedded {
  std::vector<float> state;  ///< [hidden_size], not normalised
  std::int64_t prompt_tokens = 0;
  std::int64_t cached_tokens = 0;
  double queued_ms = 0;
};

/// The request ended without (more) answers.
struct Failed {
  std::string message;
};

/// A request's events come in order: Started, then deltas of its choices interleaved, a Finished for each
/// choice. A request that asked for an embedding hears Embedded instead; one that is cancelled, out of time
/// or drained away Finished for each choice that had not ended, even before Started. Failed is the last
/// event. Nothing comes after the last event.
using Event = std::variant<Started, Delta, Finished, Embedded, Failed>;

/// Called from the scheduler's thread, between steps: must return at once and not call the scheduler back,
/// but for cancel().
using EventSink = std::function<void(Event event)>;

}  // namespace eider::serving
