// MergeTable: the merges of a BPE vocabulary, from two neighbouring ids to their rank and what they become.
#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "text/symbol_merge.h"
#include "text/vocabulary.h"

namespace eider {

/// Spelling to id. Views of the vocabulary's tokens.
using TokenIndex = std::unordered_map<std::string_view, TokenId>;

/// The tokens that text can be merged into. Of several with one spelling the first id stands for it.
TokenIndex index_tokens(const Vocabulary& vocabulary);
/// kNoToken where `spelling` is no token.
TokenId find_token(const TokenIndex& index, std::string_view spelling);

class MergeTable {
 public:
  /// A merge of pieces that are no tokens is an error that names it.
  static Result<MergeTable> create(const Vocabulary& vocabulary, const TokenIndex& index);

  /// Join::kNone as its rank where the two do not join.
  Join find(TokenId left, TokenId right) const;

 private:
  // Open addressing with linear probing, half full at most: most look-ups end at the first entry.
  struct Entry {
    std::uint64_t pair;
    Join join;
  };
  static constexpr std::uint64_t kNoPair = ~std::uint64_t{0};

  explicit MergeTable(std::size_t merges);
  void add(const Merge& merge, std::uint32_t rank);
  std::size_t first_place(std::uint64_t pair) const;

  std::vector<Entry> entries_;  // as many as a power of two
};

}  // namespace eider
