#include "server/json_mask.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>

#include "server/json_automaton.h"
#include "tests/text/small_vocabulary.h"

namespace eider::server {
namespace {

bool is_whole(std::string_view text) {
  JsonAutomaton automaton;
  return automaton.take(text) && automaton.done();
}

TEST(JsonAutomaton, TakesObjectsAndNothingElse) {
  for (const char* text : {"{}", " {\n}", R"({"a":1})", R"({"a":-0.5e+10,"b":[1,"x",true,false,null,{}]})",
                           R"({"\u00e9\n\"":""})", R"({ "a" : [ ] , "b" : 10 })", "{\"a\":\"\xc3\xa9\"}",
                           R"({"a":0})", R"({"a":1E5})"})
    EXPECT_TRUE(is_whole(text)) << text;
  for (const char* text : {"",
                           "1",
                           "[]",
                           "{",
                           R"({"a"})",
                           R"({"a":})",
                           R"({"a":1,})",
                           R"({,})",
                           R"({"a":01})",
                           R"({"a":1.})",
                           R"({"a":.5})",
                           R"({"a":+1})",
                           R"({"a":1e})",
                           R"({"a":tru})",
                           R"({"a":"\x"})",
                           R"({"a":"\u12g4"})",
                           "{\"a\":\"\n\"}",
                           R"({a:1})",
                           R"({"a":1]})",
                           R"({"a":[1})",
                           R"({"a":[1,]})",
                           R"({} {})",
                           R"({"a":-})"})
    EXPECT_FALSE(is_whole(text)) << text;
}

/// Surrogates that do not pair are refused by the parser, but no mask can know.
bool has_surrogates(const std::string& text) {
  return text.find("\\ud") != std::string::npos || text.find("\\uD") != std::string::npos;
}

// The judge is nlohmann's parser.
TEST(JsonAutomaton, AgreesWithAParserOnMangledText) {
  std::mt19937 random(1);
  const std::string seed = R"({"a": [1, -2.5e3, "x\n\u0041", true, null], "b": {"c": false}})";
  const std::string bytes = "{}[]\",:\\u0129.-+eEtrufalsn \n";
  int whole = 0;
  for (int round = 0; round < 5000; ++round) {
    std::string text = seed;
    for (std::uint32_t edits = random() % 3; edits > 0; --edits) {
      const std::size_t at = random() % text.size();
      if (random() % 2 == 0)
        text.erase(at, 1);
      else
        text[at] = bytes[random() % bytes.size()];
    }
    if (has_surrogates(text)) continue;
    const bool expected = nlohmann::json::parse(text, nullptr, false).is_object();
    EXPECT_EQ(is_whole(text), expected) << text;
    whole += expected ? 1 : 0;
  }
  EXPECT_GT(whole, 500);
}

TEST(JsonAutomaton, BoundsDepthAndSpace) {
  JsonAutomaton automaton;
  EXPECT_TRUE(automaton.take("{\"a\":" + std::string(63, '[')));
  EXPECT_FALSE(automaton.take("["));
  JsonAutomaton spaces;
  EXPECT_TRUE(spaces.take(std::string(64, ' ')));
  EXPECT_FALSE(spaces.take(" "));
}

/// Bytes, "{\"" 256, "\":" 257, and an end 258.
constexpr TokenId kEnd = 258;
Tokenizer small_tokenizer() {
  Vocabulary vocabulary = byte_level_vocabulary({"{ \"", "\" :"});
  vocabulary.eos = add_token(vocabulary, "<|end|>", TokenType::kControl);
  return Tokenizer::create(std::move(vocabulary)).value();
}

std::vector<TokenId> allowed_by(const serving::TokenMask& mask, const std::vector<TokenId>& generated) {
  std::vector<std::uint64_t> allowed(5);
  mask(generated, allowed);
  std::vector<TokenId> ids;
  for (TokenId id = 0; id < 300; ++id)
    if ((allowed[static_cast<std::size_t>(id) / 64] >> (id % 64) & 1) != 0) ids.push_back(id);
  return ids;
}

TEST(JsonMask, RandomAnswersAreJson) {
  const Tokenizer tokenizer = small_tokenizer();
  const auto tokens = make_json_tokens(tokenizer, 300);
  std::mt19937 random(2);
  int ended = 0;
  for (int round = 0; round < 60; ++round) {
    const serving::TokenMask mask = make_json_mask(tokens, nullptr)(0);
    std::vector<TokenId> ids;
    std::string text;
    while (ids.size() < 300 && (ids.empty() || ids.back() != kEnd)) {
      const std::vector<TokenId> choices = allowed_by(mask, ids);
      ASSERT_FALSE(choices.empty()) << text;
      // Closing whatever is open, often enough that answers end.
      TokenId id = choices[random() % choices.size()];
      for (const TokenId closing : {'"', '}', ']'})
        if (random() % 2 == 0 && std::ranges::count(choices, closing) > 0) id = closing;
      ids.push_back(id);
      // Strings may hold any bytes, of which the detokenizer makes characters.
      for (const char c : tokenizer.bytes(id)) text += static_cast<unsigned char>(c) < 0x80 ? c : '?';
    }
    if (ids.back() != kEnd) continue;
    ++ended;
    EXPECT_TRUE(has_surrogates(text) || nlohmann::json::parse(text, nullptr, false).is_object()) << text;
  }
  EXPECT_GT(ended, 30);
}

TEST(JsonMask, WaitsForTheEndOfAThought) {
  const Tokenizer tokenizer = small_tokenizer();
  const auto tokens = make_json_tokens(tokenizer, 259);
  const serving::TokenMask mask = make_json_mask(tokens, thought_opened_by("<think>"))(0);
  const auto may_come = [&](const std::string& text, TokenId id) {
    std::vector<TokenId> ids;
    for (const char c : text) ids.push_back(static_cast<unsigned char>(c));
    return std::ranges::count(allowed_by(mask, ids), id) > 0;
  };
  EXPECT_TRUE(may_come("Hm", 'x'));
  EXPECT_FALSE(may_come("Hm", kEnd));
  EXPECT_TRUE(may_come("Hm</think>", '{'));
  EXPECT_FALSE(may_come("Hm</think>", 'x'));
  EXPECT_TRUE(may_come("Hm</think>\n{}", kEnd));
  EXPECT_TRUE(may_come("", 'x'));  // the answer began anew
  EXPECT_FALSE(may_come("Hm</think>\n{", kEnd));
}

}  // namespace
}  // namespace eider::server
