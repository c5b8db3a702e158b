#include "text/space_cleaner.h"

#include <gtest/gtest.h>

#include <random>

#include "tests/text/small_vocabulary.h"
#include "text/detokenizer.h"

namespace eider {
namespace {

std::string in_one_go(std::string_view text) {
  SpaceCleaner cleaner;
  const std::string certain = cleaner.push(text);
  return certain + cleaner.finish();
}

std::string character_by_character(std::string_view text) {
  SpaceCleaner cleaner;
  std::string result;
  for (const char c : text) result += cleaner.push({&c, 1});
  return result + cleaner.finish();
}

// What transformers' clean_up_tokenization gives.
TEST(SpaceCleaner, DropsTheSpacesThatTransformersDrops) {
  EXPECT_EQ(in_one_go("Hello , world ! It 's n't  . ' a ' we 're"), "Hello, world! It'sn't .'a'we're");
  EXPECT_EQ(in_one_go("a   ' m b"), "a 'm b");
  EXPECT_EQ(in_one_go("  . "), " . ");
}

TEST(SpaceCleaner, GivesTheSameHoweverTheTextComes) {
  constexpr std::string_view kLetters = "    ''..?!,ntmsverx";
  std::mt19937 random(5);
  for (int round = 0; round < 20000; ++round) {
    std::string text(random() % 24, ' ');
    for (char& c : text) c = kLetters[random() % kLetters.size()];
    ASSERT_EQ(character_by_character(text), in_one_go(text)) << '"' << text << '"';
  }
}

TEST(SpaceCleaner, HoldsLittle) {
  SpaceCleaner cleaner;
  std::string given;
  for (int i = 0; i < 1000; ++i) given += cleaner.push(" n");
  EXPECT_GT(given.size(), 1900u);
}

TEST(Detokenizer, CleansSpacesWhereTheVocabularyAsksForIt) {
  Vocabulary vocabulary = byte_level_vocabulary({});
  vocabulary.clean_up_spaces = true;
  const auto tokenizer = Tokenizer::create(std::move(vocabulary));
  ASSERT_TRUE(tokenizer.ok());
  Detokenizer detokenizer(*tokenizer);
  std::string text;
  for (const char c : std::string_view("a , b")) text += detokenizer.push(static_cast<std::uint8_t>(c));
  EXPECT_EQ(text + detokenizer.finish(), "a, b");
}

}  // namespace
}  // namespace eider
