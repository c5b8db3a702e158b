#include "text/tokenizer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "tests/text/small_vocabulary.h"

namespace eider {
namespace {

using Ids = std::vector<TokenId>;

std::string failure(Vocabulary vocabulary) {
  const auto tokenizer = Tokenizer::create(std::move(vocabulary));
  return tokenizer.ok() ? "" : tokenizer.error().message();
}

TEST(ByteBpe, MergesByRankAndNotByLength) {
  // "bc" ranks before "ab", so "abc" is a + bc; "abbc" has no conflict.
  const Tokenizer tokenizer = make_tokenizer(byte_level_vocabulary({"b c", "a b"}));
  EXPECT_EQ(tokenizer.encode("abc"), (Ids{'a', 256}));
  EXPECT_EQ(tokenizer.encode("abbc"), (Ids{257, 256}));
}

TEST(ByteBpe, TakesTheLeftmostOfEqualPairs) {
  const Tokenizer tokenizer = make_tokenizer(byte_level_vocabulary({"a a", "aa a"}));
  EXPECT_EQ(tokenizer.encode("aaa"), (Ids{257}));
  EXPECT_EQ(tokenizer.encode("aaaaa"), (Ids{256, 257}));
}

// The textbook loop over the whole list of symbols, as the definition.
Ids merge_naively(const Vocabulary& vocabulary, std::string_view piece) {
  std::map<std::pair<TokenId, TokenId>, std::size_t> ranks;
  for (std::size_t rank = 0; rank < vocabulary.merges.size(); ++rank) {
    const std::string& merge = vocabulary.merges[rank];
    const auto id = [&](const std::string& text) {
      return static_cast<TokenId>(std::ranges::find(vocabulary.tokens, text) - vocabulary.tokens.begin());
    };
    ranks.try_emplace({id(merge.substr(0, merge.find(' '))), id(merge.substr(merge.find(' ') + 1))}, rank);
  }
  Ids ids;
  for (const char c : piece) ids.push_back(static_cast<std::uint8_t>(c));
  while (true) {
    std::size_t best_rank = vocabulary.merges.size();
    std::size_t best = 0;
    for (std::size_t i = 0; i + 1 < ids.size(); ++i) {
      const auto found = ranks.find({ids[i], ids[i + 1]});
      if (found != ranks.end() && found->second < best_rank) {
        best_rank = found->second;
        best = i;
      }
    }
    if (best_rank == vocabulary.merges.size()) return ids;
    ids[best] = static_cast<TokenId>(256 + best_rank);
    ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  }
}

TEST(ByteBpe, EqualsTheTextbookLoopOnRandomMergesAndWords) {
  std::mt19937 random(1);
  for (int round = 0; round < 50; ++round) {
    std::vector<std::string> pieces = {"a", "b", "c"};
    std::vector<std::string> merges;
    while (merges.size() < 12) {
      const std::string left = pieces[random() % pieces.size()];
      const std::string right = pieces[random() % pieces.size()];
      if (std::ranges::find(pieces, left + right) != pieces.end()) continue;
      merges.push_back(left + " " + right);
      pieces.push_back(left + right);
    }
    const Vocabulary vocabulary = byte_level_vocabulary(merges);
    const Tokenizer tokenizer = make_tokenizer(vocabulary);
    for (int i = 0; i < 50; ++i) {
      std::string word(random() % 60, 'a');
      for (char& c : word) c = static_cast<char>('a' + random() % 3);
      ASSERT_EQ(tokenizer.encode(word), merge_naively(vocabulary, word)) << word;
    }
  }
}

TEST(ByteBpe, EmitsWholeTokensWhereThePreTokenizerSaysSo) {
  // No merge leads to "abc".
  Vocabulary vocabulary = byte_level_vocabulary({"b c"}, "llama-bpe");
  const TokenId whole = add_token(vocabulary, "abc", TokenType::kNormal);
  EXPECT_EQ(make_tokenizer(vocabulary).encode("abc"), (Ids{whole}));
  vocabulary.pre_tokenizer = "gpt-2";
  EXPECT_EQ(make_tokenizer(vocabulary).encode("abc"), (Ids{'a', 256}));
}

TEST(ByteBpe, NormalisesWhereTheModelWasTrainedOnNfc) {
  const Tokenizer qwen = make_tokenizer(byte_level_vocabulary({}, "qwen2"));
  EXPECT_EQ(qwen.encode("e\xCC\x81\xFF"), (Ids{0xC3, 0xA9, 0xFF}));
  const Tokenizer smollm = make_tokenizer(byte_level_vocabulary({}, "smollm"));
  EXPECT_EQ(smollm.encode("e\xCC\x81"), (Ids{'e', 0xCC, 0x81}));
}

TEST(ByteBpe, EveryByteComesBack) {
  const Tokenizer tokenizer = make_tokenizer(byte_level_vocabulary({"a b", "\xC4\xA0 a"}));
  std::mt19937 random(2);
  std::string text(100000, ' ');
  for (char& c : text) c = static_cast<char>(random());
  std::string back;
  for (const TokenId id : tokenizer.encode(text)) back += tokenizer.bytes(id);
  EXPECT_EQ(back, text);
}

TEST(SentencePiece, MergesByScoreAndSpellsTheRestInBytes) {
  // Scores fall in this order, so "bc" wins over "ab".
  const Tokenizer tokenizer =
      make_tokenizer(sentencepiece_vocabulary({"bc", "ab", "a", "b", "c", "\xE2\x96\x81"}));
  constexpr TokenId kBc = 259, kAb = 260, kA = 261, kSpace = 264;
  EXPECT_EQ(tokenizer.encode("abc"), (Ids{kA, kBc}));
  EXPECT_EQ(tokenizer.encode("ab a"), (Ids{kAb, kSpace, kA}));
  EXPECT_EQ(tokenizer.encode("\xC3\xA9"), (Ids{3 + 0xC3, 3 + 0xA9}));
  EXPECT_EQ(tokenizer.encode("\xFF"), (Ids{3 + 0xFF}));
}

TEST(SentencePiece, PutsASpaceBeforeTextThatFollowsASpecialToken) {
  Vocabulary vocabulary = sentencepiece_vocabulary({"\xE2\x96\x81", "a"});
  vocabulary.add_space_prefix = true;
  vocabulary.add_bos = true;
  const Tokenizer tokenizer = make_tokenizer(std::move(vocabulary));
  EXPECT_EQ(tokenizer.encode("a"), (Ids{1, 259, 260}));
  EXPECT_EQ(tokenizer.encode(""), (Ids{1}));
  EXPECT_EQ(tokenizer.encode("a</s>a"), (Ids{1, 259, 260, 2, 259, 260}));
  EXPECT_EQ(tokenizer.encode("<s>a"), (Ids{1, 259, 260}));  // BOS is not doubled
  EXPECT_EQ(tokenizer.encode("a", {.add_special = false}), (Ids{259, 260}));
}

TEST(SpecialTokens, ControlTokensNeedParsingAndUserDefinedOnesDoNot) {
  Vocabulary vocabulary = byte_level_vocabulary({});
  const TokenId end = add_token(vocabulary, "<e>", TokenType::kControl);
  const TokenId two_lines = add_token(vocabulary, "\n\n", TokenType::kUserDefined);
  const TokenId three_lines = add_token(vocabulary, "\n\n\n", TokenType::kUserDefined);
  const Tokenizer tokenizer = make_tokenizer(std::move(vocabulary));
  EXPECT_EQ(tokenizer.encode("<e>\n\n"), (Ids{end, two_lines}));
  EXPECT_EQ(tokenizer.encode("<e>\n\n", {.parse_special = false}), (Ids{'<', 'e', '>', two_lines}));
  EXPECT_EQ(tokenizer.encode("\n\n\n\n\n\n"), (Ids{three_lines, three_lines}));
  EXPECT_EQ(tokenizer.encode("\n\n\n\n"), (Ids{three_lines, '\n'}));
}

TEST(Tokenizer, KnowsWhatEndsATurn) {
  Vocabulary vocabulary = byte_level_vocabulary({});
  vocabulary.eos = 5;
  vocabulary.more_eos = {7};
  const TokenId by_text = add_token(vocabulary, "<|im_end|>", TokenType::kControl);
  const TokenId printed = add_token(vocabulary, "<|end|>", TokenType::kUserDefined);
  const Tokenizer tokenizer = make_tokenizer(std::move(vocabulary));
  EXPECT_TRUE(tokenizer.ends_turn(5));
  EXPECT_TRUE(tokenizer.ends_turn(7));
  EXPECT_TRUE(tokenizer.ends_turn(by_text));
  EXPECT_FALSE(tokenizer.ends_turn(printed));
  EXPECT_FALSE(tokenizer.ends_turn(6));
  EXPECT_FALSE(tokenizer.ends_turn(-1));
}

TEST(Tokenizer, RefusesVocabulariesThatContradictThemselves) {
  Vocabulary vocabulary;
  EXPECT_EQ(failure(vocabulary), "tokenizer: the vocabulary has no tokens");
  vocabulary = byte_level_vocabulary({});
  vocabulary.model = "rwkv";
  EXPECT_EQ(failure(vocabulary),
            "tokenizer: unknown tokenizer model 'rwkv'; known are gpt2, bpe, llama, unigram");
  vocabulary = byte_level_vocabulary({});
  vocabulary.merges = {"a zz"};
  EXPECT_EQ(failure(vocabulary), "tokenizer: merge 0 ('a zz') names a piece that is no token");
  vocabulary.merges = {"ab"};
  EXPECT_EQ(failure(vocabulary), "tokenizer: merge 0 ('ab') is not two pieces");
  vocabulary = byte_level_vocabulary({});
  vocabulary.types.pop_back();
  EXPECT_EQ(failure(vocabulary), "tokenizer: 255 token types for 256 tokens");
  vocabulary = byte_level_vocabulary({});
  vocabulary.bos = 256;
  EXPECT_EQ(failure(vocabulary), "tokenizer: bos token id 256 is not below the 256 tokens");
  vocabulary = sentencepiece_vocabulary({"a"});
  vocabulary.scores.clear();
  EXPECT_EQ(failure(vocabulary), "tokenizer: 0 scores for 260 tokens");
}

}  // namespace
}  // namespace eider
