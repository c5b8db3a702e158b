// WordCuts: where a text whose spaces are spelled U+2581 can be cut without changing what it merges to. A
// merge makes a token of what stands beside each other in the text, so none can cross a place between two
// characters that stand so in no token; what is on its two sides merges independently.
#pragma once

#include <bitset>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace eider {

/// How SentencePiece spells a space, U+2581.
inline constexpr std::string_view kSentencePieceSpace = "\xE2\x96\x81";

class WordCuts {
 public:
  explicit WordCuts(const std::vector<std::string>& tokens) {
    for (const std::string& token : tokens) {
      for (std::size_t at = token.find(kSentencePieceSpace, 1); at != std::string::npos;
           at = token.find(kSentencePieceSpace, at + 1))
        joined_[static_cast<std::uint8_t>(token[at - 1])] = true;
    }
  }

  /// The longest part of `text`, which is not empty, from its start to a cut.
  std::string_view first_word(std::string_view text) const {
    std::size_t at = text.find(kSentencePieceSpace, 1);
    while (at != std::string_view::npos && joined_[static_cast<std::uint8_t>(text[at - 1])])
      at = text.find(kSentencePieceSpace, at + 1);
    return text.substr(0, at);
  }

 private:
  std::bitset<256> joined_;  // bytes that stand before U+2581 in a token
};

}  // namespace eider
