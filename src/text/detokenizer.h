// Detokenizer: a stream of ids to a stream of text that never ends inside a UTF-8 character.
#pragma once

#include <optional>
#include <string>

#include "text/space_cleaner.h"
#include "text/tokenizer.h"

namespace eider {

class Detokenizer {
 public:
  enum class ControlTokens : bool { kHidden, kSpelled };

  /// `tokenizer` must outlive this object. `at_text_start`: whether leading spaces of the source's
  /// convention are dropped.
  explicit Detokenizer(const Tokenizer& tokenizer, bool at_text_start = true,
                       ControlTokens control_tokens = ControlTokens::kHidden);

  /// Text that is certain once `id` is known: whole UTF-8 characters; bytes that can never become one come
  /// out as U+FFFD (one per maximal ill-formed subsequence, Unicode 15 section 3.9).
  std::string push(TokenId id);
  /// What was held back; an incomplete tail becomes one U+FFFD.
  std::string finish();

 private:
  /// Moves what is whole of `held_` to its text.
  std::string take_whole_characters();

  const Tokenizer* tokenizer_;
  std::string held_;
  std::optional<SpaceCleaner> cleaner_;  // where the vocabulary asks for it
  LeadingSpace leading_space_;
  ControlTokens control_tokens_;
};

}  // namespace eider
