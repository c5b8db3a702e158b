// CharacterMap: SentencePiece's precompiled normalisation, a trie from sequences of characters to what
// replaces them, as models carry it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace eider {

class CharacterMap {
 public:
  /// `blob`: the trie's size in bytes (32 bits, little endian), the trie (a double array of 32-bit units as
  /// Darts-clone writes it), and the replacements, each ended by a zero byte.
  static Result<CharacterMap> parse(std::string_view blob);

  /// As SentencePiece applies it: at each place the longest sequence that has a replacement.
  void apply(std::string_view valid, std::string& result) const;
  /// As the tokenizers package does: a short grapheme cluster that begins with a sequence becomes its
  /// replacement as a whole, else each character is looked up alone.
  void apply_by_graphemes(std::string_view valid, std::string& result) const;

 private:
  struct Match {
    std::size_t size;  // bytes of the sequence
    std::string_view replacement;
  };
  enum class Which : bool { kShortest, kLongest };

  CharacterMap() = default;
  std::optional<Match> find(std::string_view text, Which which) const;

  std::vector<std::uint32_t> units_;
  std::string replacements_;
};

}  // namespace eider
