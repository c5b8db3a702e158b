// PreTokenizer: cuts text into the pieces that byte-level BPE merges within, by the list of patterns that a
// model was trained with.
#pragma once

#include <string_view>
#include <vector>

#include "base/function_ref.h"
#include "base/result.h"
#include "text/regex.h"

namespace eider {

class PreTokenizer {
 public:
  /// By the name of tokenizer.ggml.pre. An unknown name is an error that lists the known ones.
  static Result<PreTokenizer> named(std::string_view name);

  /// Calls `take` with every piece in order; together they are `text`. The first pattern cuts the text: each
  /// match is a piece, and so is each gap; the next pattern then cuts each of those, as if it stood alone. Of
  /// invalid UTF-8 each byte is classed as U+FFFD.
  void split(std::string_view text, FunctionRef<void(std::string_view)> take) const;

  /// The text is brought to NFC first.
  bool normalizes_nfc() const { return normalizes_nfc_; }
  /// A piece that is a token is emitted whole, even where no merges lead to it.
  bool ignores_merges() const { return ignores_merges_; }

 private:
  PreTokenizer() = default;
  void split_valid(std::string_view text, std::size_t stage, Regex::Scratch& scratch,
                   FunctionRef<void(std::string_view)> take) const;

  std::vector<Regex> patterns_;
  bool normalizes_nfc_ = false;
  bool ignores_merges_ = false;
};

}  // namespace eider
