// ByteBpe: byte-level BPE ("gpt2"): text is cut into pieces, and within a piece bytes are merged by rank.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "text/pre_tokenizer.h"
#include "text/symbol_merge.h"
#include "text/vocabulary.h"

namespace eider {

class ByteBpe {
 public:
  /// `token_bytes[id]`: what a token stands for; must outlive this object.
  static Result<ByteBpe> create(const Vocabulary& vocabulary, const std::vector<std::string>& token_bytes);

  /// Appends the ids of a text that holds no special tokens.
  void encode(std::string_view text, std::vector<TokenId>& ids) const;

 private:
  // Pieces already encoded in this call: a piece to where its ids stand in the output. Kept to one call, so
  // that encode() needs no lock and no bound on how long an entry lives.
  struct Emitted {
    std::size_t begin;
    std::size_t count;
  };
  using PieceCache = std::unordered_map<std::string_view, Emitted>;

  explicit ByteBpe(PreTokenizer pre_tokenizer) : pre_tokenizer_(std::move(pre_tokenizer)) {}
  Status add_merges(const Vocabulary& vocabulary);
  void encode_piece(std::string_view piece, SymbolList& symbols, std::vector<TokenId>& ids) const;

  static std::uint64_t pair(TokenId left, TokenId right) {
    return (static_cast<std::uint64_t>(left) << 32) | static_cast<std::uint32_t>(right);
  }
  struct PairHash {
    std::size_t operator()(std::uint64_t pair) const {
      pair *= 0x9E3779B97F4A7C15u;
      return pair ^ (pair >> 32);
    }
  };

  PreTokenizer pre_tokenizer_;
  std::array<TokenId, 256> byte_ids_{};
  TokenId unknown_ = kNoToken;
  std::unordered_map<std::uint64_t, Join, PairHash> joins_;  // pair() -> rank and result
  std::unordered_map<std::string_view, TokenId>
      whole_pieces_;  // only where merges are ignored for whole tokens
};

}  // namespace eider
