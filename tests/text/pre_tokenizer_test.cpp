#include "text/pre_tokenizer.h"

#include <gtest/gtest.h>

#include <string>

namespace eider {
namespace {

using Pieces = std::vector<std::string>;

Pieces split(std::string_view name, std::string_view text) {
  const auto pre_tokenizer = PreTokenizer::named(name);
  EXPECT_TRUE(pre_tokenizer.ok()) << pre_tokenizer.error().message();
  Pieces pieces;
  pre_tokenizer->split(text, [&](std::string_view piece) { pieces.emplace_back(piece); });
  return pieces;
}

TEST(PreTokenizer, CutsWordsContractionsAndSpacesAsGpt2Does) {
  EXPECT_EQ(split("gpt-2", "I'm  here, we'LL see "),
            (Pieces{"I", "'m", " ", " here", ",", " we", "'", "LL", " see", " "}));
  EXPECT_EQ(split("gpt-2", "x12 345"), (Pieces{"x", "12", " 345"}));
}

TEST(PreTokenizer, AppliesTheSecondPatternInsideThePiecesOfTheFirst) {
  EXPECT_EQ(split("smollm", "x12 345"), (Pieces{"x", "1", "2", " ", "3", "4", "5"}));
  EXPECT_EQ(split("deepseek-v3",
                  "1234\xE4\xB8\xAD\xE6\x96\x87"
                  "abc"),
            (Pieces{"123", "4", "\xE4\xB8\xAD\xE6\x96\x87", "abc"}));
}

TEST(PreTokenizer, GroupsDigitsAndIgnoresCaseInContractionsAsTheNamesSay) {
  EXPECT_EQ(split("llama-bpe", "we'LL 12345\n\n x"), (Pieces{"we", "'LL", " ", "123", "45", "\n\n", " x"}));
  EXPECT_EQ(split("qwen2", "a123"), (Pieces{"a", "1", "2", "3"}));
}

TEST(PreTokenizer, Qwen35KeepsCombiningMarksInWords) {
  const std::string text = "e\xCC\x81s";  // e, U+0301, s
  EXPECT_EQ(split("qwen2", text), (Pieces{"e", "\xCC\x81s"}));
  EXPECT_EQ(split("qwen35", text), (Pieces{text}));
}

TEST(PreTokenizer, WhiteSpaceIsUnicodes) {
  // U+3000 and U+0085 are White_Space; U+180E was until Unicode 6.3 and PCRE2's own \s still takes it.
  EXPECT_EQ(split("gpt-2",
                  "a\xE3\x80\x80\xE3\x80\x80"
                  "b"),
            (Pieces{"a", "\xE3\x80\x80", "\xE3\x80\x80", "b"}));
  EXPECT_EQ(split("gpt-2", "!\xC2\x85!"), (Pieces{"!", "\xC2\x85", "!"}));
  EXPECT_EQ(split("gpt-2", "!\xE1\xA0\x8E!"), (Pieces{"!\xE1\xA0\x8E!"}));
}

TEST(PreTokenizer, KeepsInvalidBytesAndClassesThemAsReplacementCharacters) {
  EXPECT_EQ(split("gpt-2", "ab\xFF\xC3 \xE2\x82z"), (Pieces{"ab", "\xFF\xC3", " \xE2\x82", "z"}));
}

TEST(PreTokenizer, NamesTheKnownOnesWhereTheNameIsUnknown) {
  const auto result = PreTokenizer::named("nosuch");
  ASSERT_FALSE(result.ok());
  EXPECT_NE(result.error().message().find("unknown pre-tokenizer 'nosuch'"), std::string::npos);
  EXPECT_NE(result.error().message().find("smollm"), std::string::npos);
}

TEST(PreTokenizer, EveryNameCompilesAndLosesNothing) {
  const std::string text =
      "Ab c1234\r\n \t\xE4\xB8\xAD"
      "don't \xFF  x=\"1\"; \xF0\x9F\x98\x80\xD7\x90 ";
  for (const char* name : {"default", "gpt-2", "smollm", "falcon", "llama-bpe", "dbrx", "qwen2", "stablelm2",
                           "qwen35", "deepseek-llm", "deepseek-coder", "deepseek-v3", "tekken", "gpt-4o",
                           "seed-coder", "bailingmoe", "bloom", "viking"}) {
    std::string joined;
    for (const std::string& piece : split(name, text)) joined += piece;
    EXPECT_EQ(joined, text) << name;
  }
}

// Runs that a backtracking engine could try from each of their characters, or push on a stack character by
// character.
TEST(PreTokenizer, LongRunsAreLinear) {
  constexpr std::size_t kLength = std::size_t{1} << 20;
  for (const char* name : {"smollm", "llama-bpe", "deepseek-llm", "deepseek-v3", "gpt-4o"}) {
    for (const char fill : {' ', 'a', 'A', '\n', '1', '!', '\xFF'}) {
      std::string text(kLength, fill);
      text += "5";
      std::size_t total = 0;
      const auto pre_tokenizer = PreTokenizer::named(name);
      ASSERT_TRUE(pre_tokenizer.ok());
      pre_tokenizer->split(text, [&](std::string_view piece) { total += piece.size(); });
      EXPECT_EQ(total, text.size()) << name;
    }
  }
}

}  // namespace
}  // namespace eider
