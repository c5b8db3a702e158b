#include "runtime/conversation.h"

#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <vector>

#include "tests/runtime/fake_backend.h"
#include "tests/text/small_vocabulary.h"

namespace eider {
namespace {

using test::FakeBackend;
using test::full_kind;
using test::sliding_kind;

using Ids = std::vector<TokenId>;

// Byte b is token b; "ab" is one token, which the tokenizer always makes of these bytes; then two control
// tokens.
constexpr TokenId kAb = 256, kBegin = 257, kEnd = 258;

Tokenizer byte_level() {
  Vocabulary vocabulary = byte_level_vocabulary({"a b"});
  vocabulary.bos = add_token(vocabulary, "<begin>", TokenType::kControl);
  vocabulary.eos = add_token(vocabulary, "<end>", TokenType::kControl);
  vocabulary.add_bos = true;
  auto tokenizer = Tokenizer::create(std::move(vocabulary));
  EXPECT_TRUE(tokenizer.ok());
  return std::move(*tokenizer);
}

Ids ids(const Conversation& conversation) {
  return {conversation.ids().begin(), conversation.ids().end()};
}

TEST(Conversation, TokenisesTheFirstPromptWhole) {
  Conversation conversation;
  conversation.set_prompt(byte_level(), "xab");
  EXPECT_EQ(ids(conversation), (Ids{kBegin, 'x', kAb}));
}

TEST(Conversation, KeepsGeneratedIdsThatTheTokenizerWouldNotMake) {
  const Tokenizer tokenizer = byte_level();
  Conversation conversation;
  conversation.set_prompt(tokenizer, "x:");
  conversation.append(Ids{'a', 'b'}, "ab");
  conversation.append(Ids{kEnd}, "<end>");
  conversation.set_prompt(tokenizer, "x:ab<end>ab:");
  EXPECT_EQ(ids(conversation), (Ids{kBegin, 'x', ':', 'a', 'b', kEnd, kAb, ':'}));
}

TEST(Conversation, KeepsTheAnswerWhereTheTemplateEndsItInItsOwnWay) {
  const Tokenizer tokenizer = byte_level();
  Conversation conversation;
  conversation.set_prompt(tokenizer, "x:");
  conversation.append(Ids{'a', 'b'}, "ab");
  conversation.append(Ids{kEnd}, "<end>");
  conversation.set_prompt(tokenizer, "x:ab<begin>y:");
  EXPECT_EQ(ids(conversation), (Ids{kBegin, 'x', ':', 'a', 'b', kBegin, 'y', ':'}));
}

TEST(Conversation, TokenisesAnewFromTheLastPlaceThatIsUnchanged) {
  const Tokenizer tokenizer = byte_level();
  Conversation conversation;
  conversation.set_prompt(tokenizer, "x:");
  conversation.append(Ids{'a', 'b'}, "ab");
  conversation.append(Ids{kEnd}, "<end>");
  conversation.set_prompt(tokenizer, "x:ab<end>y:");
  conversation.append(Ids{'(', 'a', 'b', ')', 'a', 'b'}, "(ab)ab");
  conversation.append(Ids{kEnd}, "<end>");

  // The template takes what stands in brackets out of the second answer: the first one's ids stay.
  Conversation rewritten = conversation;
  rewritten.set_prompt(tokenizer, "x:ab<end>y:ab<end>z:");
  EXPECT_EQ(ids(rewritten), (Ids{kBegin, 'x', ':', 'a', 'b', kEnd, 'y', ':', kAb, kEnd, 'z', ':'}));

  // Another beginning leaves nothing as it was.
  rewritten.set_prompt(tokenizer, "X:ab<end>z:");
  EXPECT_EQ(ids(rewritten), (Ids{kBegin, 'X', ':', kAb, kEnd, 'z', ':'}));
}

TEST(Conversation, TheSamePromptAgainIsItself) {
  const Tokenizer tokenizer = byte_level();
  Conversation conversation;
  conversation.set_prompt(tokenizer, "x:");
  conversation.append(Ids{kEnd}, "");  // an answer without any text
  conversation.set_prompt(tokenizer, "x:");
  EXPECT_EQ(ids(conversation), (Ids{kBegin, 'x', ':'}));
  conversation.append(Ids{'a', 'b'}, "ab");
  conversation.set_prompt(tokenizer, "x:");
  EXPECT_EQ(ids(conversation), (Ids{kBegin, 'x', ':'}));
}

TEST(Conversation, PutsASpaceOnlyWhereTextBegins) {
  Vocabulary vocabulary = sentencepiece_vocabulary({"▁", "a", "b"});
  vocabulary.add_space_prefix = true;
  constexpr TokenId kSpace = 259, kA = 260, kB = 261, kEos = 2;
  auto tokenizer = Tokenizer::create(std::move(vocabulary));
  ASSERT_TRUE(tokenizer.ok());
  Conversation conversation;
  conversation.set_prompt(*tokenizer, "a");
  EXPECT_EQ(ids(conversation), (Ids{kSpace, kA}));
  conversation.append(Ids{kA, kA}, "aa");
  Conversation ended = conversation;
  conversation.set_prompt(*tokenizer, "aaab");  // the text goes on
  EXPECT_EQ(ids(conversation), (Ids{kSpace, kA, kA, kA, kB}));
  ended.append(Ids{kEos}, "</s>");
  ended.set_prompt(*tokenizer, "aaa</s>b");  // after a special token it begins again
  EXPECT_EQ(ids(ended), (Ids{kSpace, kA, kA, kA, kEos, kSpace, kB}));
}

// A session that holds `tokens`.
Session session_with(KvPool& pool, const Ids& tokens) {
  Session session(pool, 4096);
  EXPECT_TRUE(session.reserve(static_cast<std::int64_t>(tokens.size())).ok());
  session.append(tokens);
  return session;
}

TEST(KeepCommonPrefix, LeavesATokenToComputeAndWhatIsShared) {
  FakeBackend backend;
  KvPool pool(backend, {full_kind()}, KvType::kF16, 0);
  for (const auto& [held, prompt, kept] : std::vector<std::tuple<Ids, Ids, std::int64_t>>{
           {{}, {1, 2}, 0},
           {{1, 2}, {1, 2, 3}, 2},
           {{1, 2, 3}, {1, 2, 4, 5}, 2},
           {{1, 2, 3}, {1, 2, 3}, 2},
           {{1, 2, 3}, {1, 2}, 1},
           {{1, 2, 3}, {9}, 0},
       }) {
    Session session = session_with(pool, held);
    EXPECT_EQ(keep_common_prefix(session, prompt), kept);
    EXPECT_EQ(session.length(), kept);
  }
}

TEST(KeepCommonPrefix, GoesBackToThePromptEndWhereAWindowHasMovedOn) {
  FakeBackend backend;
  KvPool pool(backend, {sliding_kind(100)}, KvType::kF16, 0);
  Session session = session_with(pool, Ids(300, 1));
  session.mark_prompt_end();
  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE(session.reserve(1).ok());
    session.append(Ids{2});
  }
  Ids prompt(300, 1);
  prompt.insert(prompt.end(), 500, 2);
  prompt.push_back(3);
  // 800 tokens are shared, but what the window saw there is gone: back to the blocks about the prompt's end.
  const std::int64_t kept = keep_common_prefix(session, prompt);
  EXPECT_GE(kept, 299);
  EXPECT_LE(kept, 384);
}

}  // namespace
}  // namespace eider
