// What vocabularies of tokenizer.json files have beyond those of GGUF files: normalizers, rules of added
// tokens, split rules, BPE over characters.
#include <gtest/gtest.h>

#include "tests/text/small_vocabulary.h"
#include "text/pre_tokenizer.h"
#include "text/tokenizer.h"

namespace eider {
namespace {

using Ids = std::vector<TokenId>;
using Pieces = std::vector<std::string>;

// What tokenizer.json spells out where a GGUF file has a name.
Vocabulary character_vocabulary() {
  const std::string space = "\xE2\x96\x81";
  Vocabulary vocabulary;
  vocabulary.model = "bpe";
  for (const std::string& token :
       {std::string("a"), std::string("b"), std::string("ab"), space, space + "ab"})
    add_token(vocabulary, token, TokenType::kNormal);
  vocabulary.merge_ids = {{.left = 0, .right = 1, .joined = 2}, {.left = 3, .right = 2, .joined = 4}};
  vocabulary.unknown = add_token(vocabulary, "<unk>", TokenType::kUnknown);
  vocabulary.normalizer = {
      {.kind = NormalizerStep::Kind::kPrepend, .content = "\xE2\x96\x81"},
      {.kind = NormalizerStep::Kind::kReplace, .pattern = " ", .content = "\xE2\x96\x81"}};
  return vocabulary;
}

TEST(CharacterBpe, MergesCharactersOfNormalisedText) {
  const Tokenizer tokenizer = make_tokenizer(character_vocabulary());
  EXPECT_EQ(tokenizer.encode("ab ab"), (Ids{4, 4}));
  EXPECT_EQ(tokenizer.encode("ab", {.continues_text = true}), (Ids{2}));
  EXPECT_EQ(tokenizer.bytes(4), " ab");
}

TEST(CharacterBpe, UnknownCharactersFuseWhereAskedAndFallBackToBytesWhereThereAreTokens) {
  Vocabulary vocabulary = character_vocabulary();
  vocabulary.normalizer.clear();
  EXPECT_EQ(make_tokenizer(vocabulary).encode("axxb"), (Ids{0, 5, 5, 1}));
  vocabulary.fuse_unknown = true;
  EXPECT_EQ(make_tokenizer(vocabulary).encode("axxb"), (Ids{0, 5, 1}));
  const TokenId c3 = add_token(vocabulary, "<0xC3>", TokenType::kByte);
  const TokenId a9 = add_token(vocabulary, "<0xA9>", TokenType::kByte);
  EXPECT_EQ(make_tokenizer(vocabulary).encode("a\xC3\xA9x"), (Ids{0, c3, a9, 5}));
  EXPECT_EQ(make_tokenizer(vocabulary).encode("\xC3\xA8"), (Ids{5}));  // not half of it in bytes
}

TEST(AddedTokens, TakeWhiteSpaceAlongAndStandAloneWhereTheirRulesSaySo) {
  Vocabulary vocabulary = byte_level_vocabulary({});
  const TokenId id = add_token(vocabulary, "[X]", TokenType::kUserDefined);
  EXPECT_EQ(make_tokenizer(vocabulary).encode("a [X]\xE3\x80\x80z"),
            (Ids{'a', ' ', id, 0xE3, 0x80, 0x80, 'z'}));
  vocabulary.added_token_rules = {{.id = id, .lstrip = true}};
  EXPECT_EQ(make_tokenizer(vocabulary).encode("a \n[X] z"), (Ids{'a', id, ' ', 'z'}));
  vocabulary.added_token_rules = {{.id = id, .rstrip = true}};
  EXPECT_EQ(make_tokenizer(vocabulary).encode("a [X]\xE3\x80\x80 z"), (Ids{'a', ' ', id, 'z'}));
  vocabulary.added_token_rules = {{.id = id, .lstrip = true, .rstrip = true}};
  EXPECT_EQ(make_tokenizer(vocabulary).encode("[X] [X] "), (Ids{id, id}));
  vocabulary.added_token_rules = {{.id = id, .single_word = true}};
  EXPECT_EQ(make_tokenizer(vocabulary).encode("[X]-[X]_ "), (Ids{id, '-', '[', 'X', ']', '_', ' '}));
}

TEST(AddedTokens, NormalisedOnesAreFoundInNormalisedText) {
  Vocabulary vocabulary = byte_level_vocabulary({});
  vocabulary.piece_rules.emplace();
  vocabulary.normalizer = {{.kind = NormalizerStep::Kind::kReplace, .pattern = "x", .content = "y"}};
  const TokenId id = add_token(vocabulary, "[x]", TokenType::kUserDefined);
  EXPECT_EQ(make_tokenizer(vocabulary).encode("[x][y]"), (Ids{id, '[', 'y', ']'}));
  vocabulary.added_token_rules = {{.id = id, .normalized = true}};
  EXPECT_EQ(make_tokenizer(vocabulary).encode("[x][y]"), (Ids{id, id}));
}

TEST(SplitRules, MatchesJoinTheGapBesideThem) {
  const auto pieces = [](SplitRule::Match match) {
    const PieceRule rule = SplitRule{.pattern = "-", .match = match};
    const auto pre_tokenizer = PreTokenizer::create({&rule, 1});
    Pieces result;
    pre_tokenizer->split("-a--b", [&](std::string_view piece) { result.emplace_back(piece); });
    return result;
  };
  EXPECT_EQ(pieces(SplitRule::Match::kIsolated), (Pieces{"-", "a", "-", "-", "b"}));
  EXPECT_EQ(pieces(SplitRule::Match::kWithPrevious), (Pieces{"-", "a-", "-", "b"}));
  EXPECT_EQ(pieces(SplitRule::Match::kWithNext), (Pieces{"-a", "-", "-b"}));
}

TEST(SplitRules, PatternsThatBacktrackWithoutEndMatchNothing) {
  const PieceRule rule = SplitRule{.pattern = "(a|a|aa)+[bc]"};
  const auto pre_tokenizer = PreTokenizer::create({&rule, 1});
  std::size_t pieces = 0;
  pre_tokenizer->split(std::string(10000, 'a'), [&](std::string_view) { ++pieces; });
  EXPECT_EQ(pieces, 1u);
}

TEST(Tokenizer, RepeatsAWrittenBosOnlyWhereAsked) {
  Vocabulary vocabulary = sentencepiece_vocabulary({"a"});
  vocabulary.add_bos = true;
  const Tokenizer tokenizer = make_tokenizer(std::move(vocabulary));
  EXPECT_EQ(tokenizer.encode("<s>a"), (Ids{1, 259}));
  EXPECT_EQ(tokenizer.encode("<s>a", {.repeat_bos = true}), (Ids{1, 1, 259}));
}

}  // namespace
}  // namespace eider
