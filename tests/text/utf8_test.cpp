#include "text/utf8.h"

#include <gtest/gtest.h>

namespace eider {
namespace {

// The well-formed sequences are exactly the encodings of the scalar values.
TEST(Utf8, AcceptsWhatItEncodesAndNothingElseOfTwoBytes) {
  for (char32_t code_point = 0; code_point <= 0x10FFFF; ++code_point) {
    if (code_point >= 0xD800 && code_point <= 0xDFFF) continue;
    std::string text;
    append_utf8(text, code_point);
    const Utf8Character character = first_utf8(text);
    ASSERT_EQ(character.status, Utf8Status::kComplete) << std::hex << static_cast<unsigned>(code_point);
    ASSERT_EQ(character.code_point, code_point);
    ASSERT_EQ(character.length, text.size());
    ASSERT_EQ(text.size(), code_point < 0x80 ? 1u : code_point < 0x800 ? 2u : code_point < 0x10000 ? 3u : 4u);
  }
  int complete = 0;
  for (int first = 0x80; first < 0x100; ++first) {
    for (int second = 0; second < 0x100; ++second) {
      const std::string text{static_cast<char>(first), static_cast<char>(second)};
      const Utf8Character character = first_utf8(text);
      if (character.status == Utf8Status::kComplete) complete += character.length == 2;
    }
  }
  EXPECT_EQ(complete, 0x800 - 0x80);
}

// The examples of Unicode 15, section 3.9: one substitution for each maximal subpart.
TEST(Utf8, FindsMaximalSubparts) {
  const auto lengths = [](std::string_view text) {
    std::vector<std::size_t> result;
    for (; !text.empty(); text.remove_prefix(result.back())) result.push_back(first_utf8(text).length);
    return result;
  };
  using Lengths = std::vector<std::size_t>;
  EXPECT_EQ(lengths("\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41"), (Lengths{1, 1, 1, 1, 1, 1, 1, 1, 1}));
  EXPECT_EQ(lengths("\xED\xA0\x80\xED\xBF\xBF\xED\xAF\x41"), (Lengths{1, 1, 1, 1, 1, 1, 1, 1, 1}));
  EXPECT_EQ(lengths("\xF4\x91\x92\x93\xFF\x41\x80\xBF\x42"), (Lengths{1, 1, 1, 1, 1, 1, 1, 1, 1}));
  EXPECT_EQ(lengths("\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41"), (Lengths{2, 1, 3, 2, 1}));
}

TEST(Utf8, TellsATruncatedCharacterFromAnIllFormedOne) {
  EXPECT_EQ(first_utf8("\xF0\x9F\x98").status, Utf8Status::kTruncated);
  EXPECT_EQ(first_utf8("\xF0\x9F\x98").length, 3u);
  EXPECT_EQ(first_utf8("\xF0\x9F\x98 ").status, Utf8Status::kIllFormed);
  EXPECT_EQ(first_utf8("\xF0\x80").status, Utf8Status::kIllFormed);
}

}  // namespace
}  // namespace eider
