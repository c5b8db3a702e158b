// SentencePieceBpe: BPE of SentencePiece models ("llama"): a whole text is one word, characters are merged by
// the score of what they make, and characters that are no tokens are spelled in byte tokens.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "text/symbol_merge.h"
#include "text/vocabulary.h"
#include "text/word_cuts.h"

namespace eider {

class SentencePieceBpe {
 public:
  /// `vocabulary`'s tokens must outlive this object.
  static Result<SentencePieceBpe> create(const Vocabulary& vocabulary);

  /// Appends the ids of a text that holds no special tokens and spells spaces as SentencePiece does. Where
  /// the text stands changes nothing.
  void encode(std::string_view text, bool at_start, std::vector<TokenId>& ids) const;

 private:
  explicit SentencePieceBpe(WordCuts cuts) : cuts_(cuts) {}
  Join find(std::string_view spelling) const;
  void encode_word(std::string_view text, SymbolList& symbols, std::vector<TokenId>& ids) const;

  WordCuts cuts_;

  std::unordered_map<std::string_view, Join> pieces_;  // spelling -> place in the order of scores, and id
  std::size_t longest_piece_ = 0;                      // bytes
  std::array<TokenId, 256> byte_ids_{};
  TokenId unknown_ = kNoToken;
};

}  // namespace eider
