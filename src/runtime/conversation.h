// Conversation: a chat's tokens, kept from turn to turn, so that each turn computes only what is new. Ids
// that a model generated stay as they are: tokenising their text again could give others. It knows neither
// templates nor engines.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/token_id.h"
#include "runtime/session.h"
#include "text/tokenizer.h"

namespace eider {

class Conversation {
 public:
  /// The tokens so far.
  std::span<const TokenId> ids() const { return ids_; }

  std::string_view text() const { return text_; }

  /// How many bytes of `rendering` set_prompt() would keep the ids of.
  std::size_t kept_text(std::string_view rendering) const;

  /// Makes the conversation stand for `rendering`, the chat template's text of everything said up to the next
  /// answer. What was set or appended before stays as far as `rendering` begins with its text; only the rest
  /// is tokenised.
  void set_prompt(const Tokenizer& tokenizer, std::string_view rendering);

  /// Appends generated ids; `text` is what they read as in a rendering.
  void append(std::span<const TokenId> ids, std::string_view text);
  /// Appends a whole answer, not empty, of which `text` are the ids but one that ended the turn: that one is
  /// appended by itself, for the template may write another one in its place.
  void append_answer(const Tokenizer& tokenizer, std::span<const TokenId> ids, std::string_view text);

 private:
  /// A place where the text may be cut: text_[0, text_end) is exactly what ids_[0, ids_end) stand for.
  struct Cut {
    std::size_t text_end;
    std::size_t ids_end;
  };

  std::size_t cuts_kept(std::string_view rendering) const;

  std::string text_;
  std::vector<TokenId> ids_;
  std::vector<Cut> cuts_;  // text_end ascending
};

/// Rewinds `session` to what it shares with `prompt`, less one token where that would be all of it (an answer
/// needs the logits of the last), and returns how many tokens stay. `prompt` is not empty.
std::int64_t keep_common_prefix(Session& session, std::span<const TokenId> prompt);

}  // namespace eider
