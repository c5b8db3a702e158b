#include "text/detokenizer.h"

#include <gtest/gtest.h>

#include "tests/text/small_vocabulary.h"
#include "text/utf8.h"

namespace eider {
namespace {

Tokenizer make(Vocabulary vocabulary) {
  auto tokenizer = Tokenizer::create(std::move(vocabulary));
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.error().message();
  return std::move(tokenizer).value();
}

// One chunk a byte.
std::vector<std::string> stream(const Tokenizer& tokenizer, std::string_view bytes) {
  Detokenizer detokenizer(tokenizer);
  std::vector<std::string> chunks;
  for (const char byte : bytes) chunks.push_back(detokenizer.push(static_cast<std::uint8_t>(byte)));
  chunks.push_back(detokenizer.finish());
  return chunks;
}

using Chunks = std::vector<std::string>;

TEST(Detokenizer, HoldsACharacterUntilItIsWhole) {
  const Tokenizer tokenizer = make(byte_level_vocabulary({}));
  EXPECT_EQ(stream(tokenizer, "a\xF0\x9F\x98\x80z"), (Chunks{"a", "", "", "", "\xF0\x9F\x98\x80", "z", ""}));
}

TEST(Detokenizer, ReplacesEachMaximalIllFormedSubsequenceOnce) {
  const Tokenizer tokenizer = make(byte_level_vocabulary({}));
  const std::string r(kReplacementUtf8);
  EXPECT_EQ(stream(tokenizer, "\xFF\x80"), (Chunks{r, r, ""}));
  EXPECT_EQ(stream(tokenizer, "\xF0\x9F\x98x"), (Chunks{"", "", "", r + "x", ""}));
  EXPECT_EQ(stream(tokenizer, "\xE2\x82"), (Chunks{"", "", r}));
  EXPECT_EQ(stream(tokenizer, "\xE2\xE2\x82\xAC"), (Chunks{"", r, "", "\xE2\x82\xAC", ""}));
}

TEST(Detokenizer, PrintsUserDefinedTokensAndNotControlTokens) {
  Vocabulary vocabulary = byte_level_vocabulary({});
  const TokenId end = add_token(vocabulary, "<|im_end|>", TokenType::kControl);
  const TokenId think = add_token(vocabulary, "<think>", TokenType::kUserDefined);
  const Tokenizer tokenizer = make(std::move(vocabulary));
  Detokenizer detokenizer(tokenizer);
  EXPECT_EQ(detokenizer.push(end), "");
  EXPECT_EQ(detokenizer.push(think), "<think>");
  EXPECT_EQ(detokenizer.push(-1), "");
  EXPECT_EQ(detokenizer.push(100000), "");
  EXPECT_EQ(tokenizer.piece(end), "<|im_end|>");
}

TEST(Detokenizer, DropsOneLeadingSpaceOfTheWholeOutput) {
  Vocabulary vocabulary = sentencepiece_vocabulary({"\xE2\x96\x81", "\xE2\x96\x81hi"});
  vocabulary.add_space_prefix = true;
  const Tokenizer tokenizer = make(std::move(vocabulary));
  constexpr TokenId kSpace = 259, kHi = 260;
  Detokenizer from_start(tokenizer);
  EXPECT_EQ(from_start.push(1), "");  // <s>
  EXPECT_EQ(from_start.push(kHi), "hi");
  EXPECT_EQ(from_start.push(kHi), " hi");
  Detokenizer two_spaces(tokenizer);
  EXPECT_EQ(two_spaces.push(kSpace), "");
  EXPECT_EQ(two_spaces.push(kHi), " hi");
  Detokenizer continued(tokenizer, false);
  EXPECT_EQ(continued.push(kHi), " hi");
}

}  // namespace
}  // namespace eider
