// Answer: what becomes of the ids that are sampled for a prompt: their text, and when it is over. It knows
// neither engines nor samplers, so that whoever drives those (Generation, a server) ends answers alike.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/token_id.h"
#include "runtime/stop_strings.h"
#include "text/detokenizer.h"
#include "text/tokenizer.h"

namespace eider {

struct GenerationLimits {
  std::int64_t max_tokens =
      -1;  ///< sampled tokens, the one that ends the turn included; -1: no limit of its own
  std::vector<std::string> stop;  ///< text that ends the answer and is not part of it
  bool ignore_eos = false;        ///< go on after tokens that end the turn

  /// Fails where a stop string is empty.
  Status check() const;
};

/// kStop: the model ended its turn, or a stop string came; kLength: max_tokens reached or the context is
/// full; kDeadline: its time was over.
enum class FinishReason : std::uint8_t { kStop, kLength, kCancelled, kDeadline };
const char* finish_reason_name(FinishReason reason);  // "stop", "length", "cancelled", "deadline"

/// Whether the first token after `ids` begins the text: only control tokens are among them.
bool begins_text(const Tokenizer& tokenizer, std::span<const TokenId> ids);

class Answer {
 public:
  /// `at_text_start`: begins_text() of all tokens before it. `places`: most ids that the context leaves room
  /// for. `limits` must have passed check(); `tokenizer` must outlive this object.
  Answer(const Tokenizer& tokenizer, bool at_text_start, GenerationLimits limits, std::int64_t places);

  /// Whether no id is to be sampled at all.
  bool wants_none() const { return most_ == 0; }
  /// Takes the next sampled id and returns the text that became certain, whole UTF-8 characters, may be
  /// empty. Not to be called once done().
  std::string push(TokenId id);
  /// Ends the answer, and returns the text that was held back.
  std::string finish(FinishReason reason);

  bool done() const { return done_; }
  FinishReason finish_reason() const { return finish_reason_; }
  /// The stop string that ended it.
  const std::optional<std::string>& stop_string() const { return stop_strings_.found_string(); }
  /// All of them, the one that ended the turn included.
  std::span<const TokenId> ids() const { return ids_; }

 private:
  const Tokenizer* tokenizer_;
  bool ignore_eos_;
  std::int64_t most_;
  Detokenizer detokenizer_;
  StopStrings stop_strings_;
  std::vector<TokenId> ids_;  // room for all
  bool done_ = false;
  FinishReason finish_reason_ = FinishReason::kStop;
};

}  // namespace eider
