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

namespace eider {

class Bpe {
 public:
  /// `token_bytes[id]`: what a token stands for; both must outlive this object.
  static Result<Bpe> create(const Vocabulary& vocabulary, const std::vector<std::string>& token_bytes);

  /// Appends the ids of a normalised text that holds no special tokens.
  void encode(std::string_view text, std::vector<TokenId>& ids) const;

 private:
  // Pieces already encoded in this call: a piece to where its ids stand in the output. Kept to one call, so
  // that encode() needs no lock and no bound on how long an entry lives.
  struct Emitted {
    std::size_t begin;
    std::size_t count;
  };
  using PieceCache = std::unordered_map<std::string_view, Emitted>;

  Bpe(PreTokenizer pre_tokenizer, MergeTable merges)
      : pre_tokenizer_(std::move(pre_tokenizer)), merges_(std::move(merges)) {}
  void read_characters(const Vocabulary& vocabulary);
  void encode_piece(std::string_view piece, SymbolList& symbols, std::vector<TokenId>& ids) const;
  void append_bytes(std::string_view piece, SymbolList& symbols) const;
  void append_characters(std::string_view piece, SymbolList& symbols) const;

  PreTokenizer pre_tokenizer_;
  MergeTable merges_;
  bool byte_level_ = false;
  bool fuse_unknown_ = false;
  TokenId unknown_ = kNoToken;
  std::array<TokenId, 256> byte_ids_{};  // byte-level: the byte's token, else the one that falls back to it
  std::unordered_map<char32_t, TokenId> characters_;  // not byte-level: tokens of one character
  TokenIndex whole_pieces_;                           // only where merges are ignored for whole tokens
};

}  // namespace eider
