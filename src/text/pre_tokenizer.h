// PreTokenizer: cuts text into the pieces that byte-level BPE merges within, by the list of patterns that a
// model was trained with.
#pragma once

#include <span>
#include <string_view>
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
  static Result<PreTokenizer> create(std::span<const SplitRule> rules);

  /// Calls `take` with every piece in order; together they are `text`. The first pattern cuts the text: each
  /// match is a piece (or joins the gap beside it, where its rule says so), and so is each gap; the next
  /// pattern then cuts each of those, as if it stood alone. Of invalid UTF-8 each byte is classed as U+FFFD.
  void split(std::string_view text, FunctionRef<void(std::string_view)> take) const;

  /// A piece that is a token is emitted whole, even where no merges lead to it.
  bool ignores_merges() const { return ignores_merges_; }

 private:
  PreTokenizer() = default;
  void split_valid(std::string_view text, std::size_t stage, Regex::Scratch& scratch,
                   FunctionRef<void(std::string_view)> take) const;

  struct Stage {
    Regex pattern;
    SplitRule::Match match;
  };

  std::vector<Stage> stages_;
  bool ignores_merges_ = false;
};

}  // namespace eider
