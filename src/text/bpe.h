// Bpe: byte-pair encoding with a list of merges. Text is cut into pieces, and within a piece symbols are
// merged by rank: bytes in a byte-level vocabulary ("gpt2"), else characters ("bpe").
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "text/merge_table.h"
#include "text/pre_tokenizer.h"
#include "text/symbol_merge.h"
#include "text/vocabulary.h"
#include "text/word_cuts.h"

namespace eider {

class Bpe {
 public:
  /// `token_bytes[id]`: what a token stands for; both must outlive this object.
  static Result<Bpe> create(const Vocabulary& vocabulary, const std::vector<std::string>& token_bytes);

  /// Appends the ids of a normalised text that holds no special tokens.
  /// `at_start`: no text stands before it.
  void encode(std::string_view text, bool at_start, std::vector<TokenId>& ids) const;

 private:
  Bpe(PreTokenizer pre_tokenizer, MergeTable merges, WordCuts cuts)
      : pre_tokenizer_(std::move(pre_tokenizer)), merges_(std::move(merges)), cuts_(cuts) {}
  void read_characters(const Vocabulary& vocabulary);
  void encode_piece(std::string_view piece, SymbolList& symbols, std::vector<TokenId>& ids) const;
  void append_bytes(std::string_view piece, SymbolList& symbols) const;
  void append_characters(std::string_view piece, SymbolList& symbols) const;

  PreTokenizer pre_tokenizer_;
  MergeTable merges_;
  WordCuts cuts_;
  bool byte_level_ = false;
  bool fuse_unknown_ = false;
  TokenId unknown_ = kNoToken;
  std::array<TokenId, 256> byte_ids_{};  // byte-level: the byte's token, else the one that falls back to it
  std::unordered_map<char32_t, TokenId> characters_;  // not byte-level: tokens of one character
  TokenIndex whole_pieces_;                           // only where merges are ignored for whole tokens
};

}  // namespace eider
