// UTF-8: one character at a time, by the table of well-formed sequences (Unicode 15, table 3-7).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace eider {

inline constexpr char32_t kReplacementCharacter = 0xFFFD;
inline constexpr std::string_view kReplacementUtf8 = "\xEF\xBF\xBD";

enum class Utf8Status : std::uint8_t {
  kComplete,   ///< a whole character
  kTruncated,  ///< the text ends inside what may still become a character
  kIllFormed,  ///< bytes that no continuation makes a character: a maximal ill-formed subsequence
};

struct Utf8Character {
  Utf8Status status;
  std::size_t length;   ///< bytes, 1 to 4
  char32_t code_point;  ///< U+FFFD unless complete
};

/// What `text` (not empty) begins with.
Utf8Character first_utf8(std::string_view text);

/// What `text` (not empty) ends with: the last character, or one byte that is not part of a character.
Utf8Character last_utf8(std::string_view text);

/// Unicode's White_Space property.
bool is_white_space(char32_t code_point);

bool is_valid_utf8(std::string_view text);

void append_utf8(std::string& text, char32_t code_point);

}  // namespace eider
