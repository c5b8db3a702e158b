// Unigram: SentencePiece's unigram model. Of all ways to cut a text into pieces of the vocabulary, the one of
// the highest sum of scores is taken (Viterbi over the places in the text).
#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "text/byte_trie.h"
#include "text/pre_tokenizer.h"
#include "text/vocabulary.h"

namespace eider {

class Unigram {
 public:
  /// `vocabulary` is not needed afterwards.
  static Result<Unigram> create(const Vocabulary& vocabulary);

  /// Appends the ids of a normalised text that holds no special tokens. Time is linear in the text, times the
  /// length of the longest piece at worst. `at_start`: no text stands before it.
  void encode(std::string_view text, bool at_start, std::vector<TokenId>& ids) const;

 private:
  struct Piece {
    TokenId id = kNoToken;
    double score = 0;
  };
  // The best way to cut the text up to some place, by its last piece.
  struct Best {
    double score = 0;
    TokenId id = kNoToken;   // kNoToken: a character that is no piece
    std::uint32_t size = 0;  // bytes of the last piece, 0 where no way leads here
  };

  explicit Unigram(PreTokenizer pre_tokenizer) : pre_tokenizer_(std::move(pre_tokenizer)) {}
  void add(std::string_view spelling, Piece piece);
  /// Offers every piece that `rest` begins with to the places behind `here`. Where its first character is no
  /// piece, that is offered as unknown.
  void extend(std::string_view rest, std::size_t character_size, Best* here) const;
  void encode_piece(std::string_view text, std::vector<Best>& best, std::vector<TokenId>& ids) const;
  void append_unknown_backwards(std::string_view text, std::vector<TokenId>& ids) const;

  PreTokenizer pre_tokenizer_;
  ByteTrie trie_;
  std::vector<Piece> pieces_;  // [node]
  double unknown_score_ = 0;
  TokenId unknown_ = kNoToken;
  std::array<TokenId, 256> byte_ids_{};
};

}  // namespace eider
