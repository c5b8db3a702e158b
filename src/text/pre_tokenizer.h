// PreTokenizer: cuts text into the pieces that tokens are looked for within, by the list of rules that a
// model was trained with.
#pragma once

#include <span>
#include <string_view>
#include <variant>
#include <vector>

#include "base/function_ref.h"
#include "base/result.h"
#include "text/regex.h"
#include "text/vocabulary.h"

namespace eider {

/// Whether models that name this pre-tokenizer bring text to NFC first; false for unknown names.
bool pre_tokenizer_normalizes_nfc(std::string_view name);

class PreTokenizer {
 public:
  /// By the name of tokenizer.ggml.pre. An unknown name is an error that lists the known ones.
  static Result<PreTokenizer> named(std::string_view name);
  /// By rules that are applied in order. A pattern that does not compile is an error.
  static Result<PreTokenizer> create(std::span<const PieceRule> rules);

  /// Calls `take` with every piece in order. The first rule cuts or respells the text; the next one then does
  /// so with each of the pieces, as if it stood alone. Of invalid UTF-8 each byte is classed as U+FFFD.
  /// Pieces are views that last until split() returns. `at_start`: no text stands before it.
  void split(std::string_view text, FunctionRef<void(std::string_view)> take, bool at_start = true) const;

  /// A piece that is a token is emitted whole, even where no merges lead to it.
  bool ignores_merges() const { return ignores_merges_; }

 private:
  PreTokenizer() = default;
  class Run;

  struct Split {
    Regex pattern;
    SplitRule::Match match;
  };
  using Stage = std::variant<Split, SpaceRule>;

  std::vector<Stage> stages_;
  bool ignores_merges_ = false;
};

}  // namespace eider
