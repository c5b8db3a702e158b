#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <random>

#include "tests/text/small_vocabulary.h"
#include "text/tokenizer.h"

namespace eider {
namespace {

using Ids = std::vector<TokenId>;

// <unk> is 0, then the pieces.
Vocabulary unigram_vocabulary(const std::vector<std::pair<std::string, double>>& pieces) {
  Vocabulary vocabulary;
  vocabulary.model = "unigram";
  vocabulary.unknown = add_token(vocabulary, "<unk>", TokenType::kUnknown);
  for (const auto& [piece, score] : pieces) add_token(vocabulary, piece, TokenType::kNormal, score);
  return vocabulary;
}

TEST(Unigram, TakesThePiecesOfTheHighestTotalScore) {
  const Tokenizer tokenizer = make_tokenizer(
      unigram_vocabulary({{"a", -1}, {"b", -1}, {"ab", -3}, {"abc", -5}, {"c", -1.5}, {"bc", -2}}));
  EXPECT_EQ(tokenizer.encode("ab"), (Ids{1, 2}));   // -2 is above -3
  EXPECT_EQ(tokenizer.encode("abc"), (Ids{1, 6}));  // -3 is above -3.5 and -5
}

TEST(Unigram, UnknownCharactersFuseOrAreSpelledInBytes) {
  Vocabulary vocabulary = unigram_vocabulary({{"a", -1}});
  EXPECT_EQ(make_tokenizer(vocabulary).encode("axya"), (Ids{1, 0, 1}));
  const TokenId c3 = add_token(vocabulary, "<0xC3>", TokenType::kByte);
  const TokenId a9 = add_token(vocabulary, "<0xA9>", TokenType::kByte);
  EXPECT_EQ(make_tokenizer(vocabulary).encode("a\xC3\xA9\xC3\xA9"), (Ids{1, c3, a9, c3, a9}));
  EXPECT_EQ(make_tokenizer(vocabulary).encode("\xC3\xA9\xFF"), (Ids{0}));  // not part of it in bytes
  EXPECT_EQ(make_tokenizer(vocabulary).encode("\xC3"), (Ids{c3}));
  EXPECT_EQ(make_tokenizer(vocabulary).encode("<0xC3>"), (Ids{0}));  // the spelling of a byte is text
}

// Every way to cut `text`, as the definition.
std::optional<double> best_score(const Vocabulary& vocabulary, std::string_view text, double unknown) {
  if (text.empty()) return 0;
  std::optional<double> best;
  bool has_character = false;
  for (std::size_t i = 1; i < vocabulary.tokens.size(); ++i) {
    if (!text.starts_with(vocabulary.tokens[i])) continue;
    has_character |= vocabulary.tokens[i].size() == 1;
    const auto rest = best_score(vocabulary, text.substr(vocabulary.tokens[i].size()), unknown);
    if (rest) best = std::max(best.value_or(-1e9), vocabulary.scores[i] + *rest);
  }
  if (has_character) return best;
  const auto rest = best_score(vocabulary, text.substr(1), unknown);
  if (rest) best = std::max(best.value_or(-1e9), unknown + *rest);
  return best;
}

TEST(Unigram, EqualsTheBestOfAllCutsOfRandomWords) {
  std::mt19937 random(3);
  for (int round = 0; round < 40; ++round) {
    std::vector<std::pair<std::string, double>> pieces;
    double least = 0;
    while (pieces.size() < 8) {
      std::string piece(1 + random() % 3, 'a');
      for (char& c : piece) c = static_cast<char>('a' + random() % 3);
      if (std::ranges::find(pieces, piece, &std::pair<std::string, double>::first) != pieces.end()) continue;
      pieces.emplace_back(piece, -static_cast<double>(1 + random() % 64) / 4);  // sums are exact
      least = std::min(least, pieces.back().second);
    }
    const Vocabulary vocabulary = unigram_vocabulary(pieces);
    const Tokenizer tokenizer = make_tokenizer(vocabulary);
    for (int i = 0; i < 20; ++i) {
      std::string word(1 + random() % 8, 'a');
      for (char& c : word) c = static_cast<char>('a' + random() % 3);
      const Ids ids = tokenizer.encode(word);
      if (std::ranges::find(ids, 0) != ids.end()) continue;  // fused, so its score is not known
      double score = 0;
      std::string spelled;
      for (const TokenId id : ids) {
        score += vocabulary.scores[static_cast<std::size_t>(id)];
        spelled += vocabulary.tokens[static_cast<std::size_t>(id)];
      }
      EXPECT_EQ(spelled, word);
      EXPECT_EQ(score, best_score(vocabulary, word, least - 10)) << word;
    }
  }
}

TEST(Unigram, IsLinearInOneLongWord) {
  const Tokenizer tokenizer =
      make_tokenizer(unigram_vocabulary({{"a", -1}, {"aa", -1.5}, {std::string(512, 'a'), -9}}));
  const std::string word(std::size_t{1} << 20, 'a');
  EXPECT_EQ(tokenizer.encode(word).size(), word.size() / 512);
}

TEST(Unigram, RefusesScoresAndPiecesThatMakeNoSense) {
  const auto failure = [](Vocabulary vocabulary) {
    const auto tokenizer = Tokenizer::create(std::move(vocabulary));
    return tokenizer.ok() ? "" : tokenizer.error().message();
  };
  Vocabulary vocabulary = unigram_vocabulary({{"a", std::numeric_limits<double>::infinity()}});
  EXPECT_EQ(failure(vocabulary), "tokenizer: the score of token 1 is not a finite number");
  vocabulary = unigram_vocabulary({{std::string(2000, 'a'), 0}});
  EXPECT_EQ(failure(vocabulary),
            "tokenizer: token 1 has 2000 bytes; at most 1024, and 16777216 in all, are sensible");
  vocabulary.scores.clear();
  EXPECT_EQ(failure(vocabulary), "tokenizer: 0 scores for 2 tokens");
}

}  // namespace
}  // namespace eider
