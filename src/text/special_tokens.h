// SpecialTokens: finds the tokens that are matched in text before anything else is: control tokens and
// user-defined ones.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

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
  struct Node {
    TokenId user_defined = -1;
    TokenId special = -1;
  };

  SpecialTokens() : nodes_(1) {}
  static std::uint64_t edge(std::uint32_t node, char byte) {
    return (std::uint64_t{node} << 8) | static_cast<std::uint8_t>(byte);
  }
  void add(std::string_view spelling, TokenId id, TokenType type);
  std::optional<Match> longest_at(std::string_view text, std::size_t begin, bool parse_special) const;

  std::vector<Node> nodes_;                                 // a trie over the tokens' bytes, the root first
  std::unordered_map<std::uint64_t, std::uint32_t> edges_;  // edge() -> node
  std::array<bool, 256> begins_token_{};
  std::unordered_map<TokenId, AddedTokenRule> rules_;
};

}  // namespace eider
