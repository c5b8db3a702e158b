// SpecialTokens: finds the tokens that are matched in text before anything else is: control tokens and
// user-defined ones.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "text/byte_trie.h"
#include "text/normalize.h"
#include "text/vocabulary.h"

namespace eider {

class SpecialTokens {
 public:
  /// Those that are found in text as it is written.
  static SpecialTokens of_text(const Vocabulary& vocabulary);
  /// Those that are found in normalised text.
  static SpecialTokens of_normalized_text(const Vocabulary& vocabulary, const Normalizer& normalizer);

  struct Match {
    std::size_t begin;
    std::size_t size;  ///< with the white space that the token takes along
    TokenId id;
  };

  /// The leftmost match at or after `from`, the longest of those that begin there. Control and unknown tokens
  /// count only with `parse_special`, user-defined ones always.
  std::optional<Match> find(std::string_view text, std::size_t from, bool parse_special) const;

 private:
  // What ends at a node of the trie.
  struct Ending {
    TokenId user_defined = -1;
    TokenId special = -1;
  };

  SpecialTokens() = default;
  void add(std::string_view spelling, TokenId id, TokenType type);
  std::optional<Match> longest_at(std::string_view text, std::size_t begin, bool parse_special) const;

  ByteTrie trie_;
  std::vector<Ending> endings_;  // [node]
  std::array<bool, 256> begins_token_{};
  std::unordered_map<TokenId, AddedTokenRule> rules_;
};

}  // namespace eider
