#include "runtime/generation.h"

#include <gtest/gtest.h>
#include <xxhash.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/runtime/fake_backend.h"
#include "tests/text/small_vocabulary.h"

namespace eider {
namespace {

using test::expected_digest;
using test::fake_model;
using test::FakeBackend;
using test::fill_logits;
using test::full_kind;
using test::sliding_kind;
using test::some_tokens;

// Tokens 0..255 are bytes; beyond them come these.
constexpr TokenId kEos = 256, kEot = 257, kMoreEos = 258, kThe = 259, kStopAnd = 260, kVocabSize = 261;

std::vector<TokenId> bytes(std::string_view text) {
  std::vector<TokenId> out;
  for (const char byte : text) out.push_back(static_cast<std::uint8_t>(byte));
  return out;
}

Tokenizer make_tokenizer() {
  Vocabulary vocabulary = byte_level_vocabulary({});
  vocabulary.eos = add_token(vocabulary, "<eos>", TokenType::kControl);
  vocabulary.eot = add_token(vocabulary, "<eot>", TokenType::kControl);
  vocabulary.more_eos = {add_token(vocabulary, "<more>", TokenType::kControl)};
  EXPECT_EQ(add_token(vocabulary, "the", TokenType::kUserDefined), kThe);
  EXPECT_EQ(add_token(vocabulary, "</s> and", TokenType::kUserDefined), kStopAnd);
  auto tokenizer = Tokenizer::create(std::move(vocabulary));
  EXPECT_TRUE(tokenizer.ok());
  return std::move(*tokenizer);
}

SamplerOptions greedy() {
  SamplerOptions options;
  options.temperature = 0;
  return options;
}

// A fake model of the tokenizer's size and a session on it.
class GenerationTest : public ::testing::Test {
 protected:
  void load(std::int64_t context, std::int64_t max_batch_tokens = 512) {
    session_.reset();  // before the engine that it belongs to
    EngineOptions options;
    options.max_batch_tokens = max_batch_tokens;
    auto engine =
        Engine::create(fake_model({full_kind(), sliding_kind(50)}, context, kVocabSize), backend_, options);
    ASSERT_TRUE(engine.ok());
    engine_ = std::move(*engine);
    session_.emplace(engine_->new_session());
  }

  // The model answers a prompt that ends before position `begin` with `answer`.
  void answer_with(std::size_t begin, std::vector<TokenId> answer) {
    backend_.script.logits = [begin, answer](std::int64_t position, std::uint64_t, std::span<float> logits) {
      const std::size_t index = static_cast<std::size_t>(position) + 1 - begin;
      if (index < answer.size()) logits[static_cast<std::size_t>(answer[index])] = 10;
    };
  }

  Generation start(std::vector<TokenId> prompt, GenerationLimits limits,
                   const SamplerOptions& sampling = greedy()) {
    auto sampler = Sampler::create(sampling, kVocabSize);
    EXPECT_TRUE(sampler.ok());
    auto generation =
        Generation::start(*engine_, *session_, tokenizer_, std::move(*sampler), std::move(prompt), limits);
    EXPECT_TRUE(generation.ok());
    return std::move(*generation);
  }

  static std::vector<std::string> run(Generation& generation) {
    std::vector<std::string> pieces;
    while (!generation.done()) {
      auto piece = generation.advance();
      EXPECT_TRUE(piece.ok());
      pieces.push_back(*piece);
    }
    return pieces;
  }

  static std::string joined(const std::vector<std::string>& pieces) {
    std::string text;
    for (const std::string& piece : pieces) text += piece;
    return text;
  }

  static std::vector<TokenId> ids(const Generation& generation) {
    return {generation.ids().begin(), generation.ids().end()};
  }

  const Tokenizer tokenizer_ = make_tokenizer();
  FakeBackend backend_;
  std::unique_ptr<Engine> engine_;
  std::optional<Session> session_;
};

using Pieces = std::vector<std::string>;

TEST_F(GenerationTest, StreamsUntilTheModelEndsItsTurn) {
  load(4096);
  answer_with(3, {'H', 'i', kThe, kEos, 'x'});
  Generation generation = start({1, 2, 3}, {});
  EXPECT_EQ(generation.state(), Generation::State::kPrefill);
  EXPECT_EQ(run(generation), (Pieces{"H", "i", "the", ""}));
  EXPECT_EQ(ids(generation), (std::vector<TokenId>{'H', 'i', kThe, kEos}));
  EXPECT_EQ(generation.finish_reason(), FinishReason::kStop);
  EXPECT_EQ(std::vector(session_->tokens().begin(), session_->tokens().end()),
            (std::vector<TokenId>{1, 2, 3, 'H', 'i', kThe}));
  EXPECT_STREQ(finish_reason_name(FinishReason::kStop), "stop");
  EXPECT_STREQ(finish_reason_name(FinishReason::kLength), "length");
  EXPECT_STREQ(finish_reason_name(FinishReason::kCancelled), "cancelled");
}

TEST_F(GenerationTest, EveryEndOfTurnTokenEndsItUnlessIgnored) {
  for (const TokenId end : {kEos, kEot, kMoreEos}) {
    load(4096);
    answer_with(1, {'a', end, 'b', 'c'});
    Generation stopped = start({1}, {});
    EXPECT_EQ(joined(run(stopped)), "a");
    EXPECT_EQ(stopped.finish_reason(), FinishReason::kStop);

    load(4096);
    Generation goes_on = start({1}, {.max_tokens = 4, .ignore_eos = true});
    EXPECT_EQ(joined(run(goes_on)), "abc");
    EXPECT_EQ(goes_on.finish_reason(), FinishReason::kLength);
    EXPECT_EQ(ids(goes_on), (std::vector<TokenId>{'a', end, 'b', 'c'}));
  }
}

TEST_F(GenerationTest, MaxTokensCountsSampledTokens) {
  for (const std::int64_t most : {0, 1, 5}) {
    load(4096);
    answer_with(2, bytes("abcdefgh"));
    Generation generation = start({1, 2}, {.max_tokens = most});
    EXPECT_EQ(joined(run(generation)), std::string("abcdefgh").substr(0, static_cast<std::size_t>(most)));
    EXPECT_EQ(generation.ids().size(), static_cast<std::size_t>(most));
    EXPECT_EQ(generation.finish_reason(), FinishReason::kLength);
  }
}

TEST_F(GenerationTest, AFullContextEndsTheAnswer) {
  load(10);
  answer_with(8, bytes("abcdefgh"));
  Generation generation = start(some_tokens(8, 1), {});
  EXPECT_EQ(joined(run(generation)), "abc");  // two fill the context, the third needs no place
  EXPECT_EQ(generation.finish_reason(), FinishReason::kLength);
  EXPECT_EQ(session_->length(), 10);
}

TEST_F(GenerationTest, StopStringsNeverComeOut) {
  load(4096);
  answer_with(1, {'o', 'k', '<', 'b', '<', '/', kStopAnd, 'x'});
  Generation generation = start({1}, {.stop = {"</s>", "</</"}});
  EXPECT_EQ(run(generation), (Pieces{"o", "k", "", "<b", "", "", ""}));
  EXPECT_EQ(generation.finish_reason(), FinishReason::kStop);
  EXPECT_EQ(generation.ids().size(),
            7u);  // "</" and then "</s> and": the stop string began in the last token
}

TEST_F(GenerationTest, HeldTextComesOutWhenTheAnswerEndsOtherwise) {
  for (const bool by_eos : {true, false}) {
    load(4096);
    answer_with(1, {'a', '<', '/', by_eos ? kEos : TokenId{'x'}});
    Generation generation = start({1}, {.max_tokens = by_eos ? 10 : 3, .stop = {"</s>"}});
    EXPECT_EQ(run(generation).back(), "</");
  }
}

TEST_F(GenerationTest, NeverGivesHalfACharacter) {
  load(4096);
  answer_with(1, bytes("\xF0\x9F\x98\x80!\xE2\x82"));
  Generation generation = start({1}, {.max_tokens = 7});
  EXPECT_EQ(run(generation), (Pieces{"", "", "", "\xF0\x9F\x98\x80", "!", "", "\xEF\xBF\xBD"}));
}

TEST_F(GenerationTest, StopStringsMayBeAnyCharacter) {
  load(4096);
  answer_with(1, bytes("a\xE2\x82\xAC z"));
  Generation generation = start({1}, {.stop = {"\xE2\x82\xAC"}});
  EXPECT_EQ(joined(run(generation)), "a");
}

TEST_F(GenerationTest, CancelsBetweenAnyTwoSteps) {
  load(4096, 10);
  answer_with(30, bytes("ab<"));
  Generation in_prefill = start(some_tokens(30, 1), {});
  ASSERT_TRUE(in_prefill.advance().ok());
  EXPECT_EQ(in_prefill.prefilled(), 10);
  in_prefill.cancel();
  EXPECT_EQ(*in_prefill.advance(), "");
  EXPECT_TRUE(in_prefill.done());
  EXPECT_EQ(in_prefill.finish_reason(), FinishReason::kCancelled);
  EXPECT_EQ(session_->length(), 10);

  load(4096, 10);
  Generation in_decode = start(some_tokens(30, 1), {.stop = {"<end>"}});
  for (int step = 0; step < 5; ++step) ASSERT_TRUE(in_decode.advance().ok());
  in_decode.cancel();
  EXPECT_EQ(*in_decode.advance(), "<");
  EXPECT_EQ(in_decode.finish_reason(), FinishReason::kCancelled);
  EXPECT_EQ(in_decode.ids().size(), 3u);
}

// Greedy answers of the digest model, and the hash of the rows they were sampled from, by the definition.
TEST_F(GenerationTest, IdsAndHashAreThoseOfThePlainLoop) {
  const std::vector<TokenId> prompt = some_tokens(70, 3, kVocabSize);
  SamplerOptions sampling;
  sampling.repeat_penalty = 1.2f;
  sampling.seed = 11;
  auto sampler = Sampler::create(sampling, kVocabSize);
  ASSERT_TRUE(sampler.ok());
  std::vector<TokenId> tokens = prompt;
  std::vector<float> rows;
  for (int i = 0; i < 100; ++i) {
    std::vector<float> logits(kVocabSize);
    const auto length = static_cast<std::int64_t>(tokens.size());
    fill_logits(expected_digest(tokens, length - 1, {full_kind(), sliding_kind(50)}), logits);
    rows.insert(rows.end(), logits.begin(), logits.end());
    tokens.push_back(sampler->sample(logits, tokens, length));
  }
  for (const std::int64_t chunk : {1, 7, 64, 512}) {
    load(4096, chunk);
    Generation generation = start(prompt, {.max_tokens = 100, .ignore_eos = true}, sampling);
    run(generation);
    EXPECT_EQ(ids(generation), std::vector(tokens.begin() + 70, tokens.end()));
    EXPECT_EQ(generation.logits_hash(), XXH3_64bits(rows.data(), rows.size() * sizeof(float)));
  }
}

TEST_F(GenerationTest, SeveralTakeTurnsOnOneEngine) {
  load(4096, 16);
  const GenerationLimits limits{.max_tokens = 40, .ignore_eos = true};
  std::vector<std::vector<TokenId>> alone;
  for (std::uint64_t seed = 0; seed < 3; ++seed) {
    session_.emplace(engine_->new_session());
    Generation generation = start(some_tokens(20 + static_cast<std::int64_t>(seed) * 10, seed), limits);
    run(generation);
    alone.push_back(ids(generation));
  }
  std::vector<Session> sessions;
  std::vector<Generation> generations;
  for (int i = 0; i < 3; ++i) sessions.push_back(engine_->new_session());
  for (std::uint64_t seed = 0; seed < 3; ++seed) {
    auto sampler = Sampler::create(greedy(), kVocabSize);
    auto generation = Generation::start(*engine_, sessions[seed], tokenizer_, std::move(*sampler),
                                        some_tokens(20 + static_cast<std::int64_t>(seed) * 10, seed), limits);
    ASSERT_TRUE(generation.ok());
    generations.push_back(std::move(*generation));
  }
  while (!std::all_of(generations.begin(), generations.end(), [](const Generation& g) { return g.done(); })) {
    for (Generation& generation : generations) {
      if (generation.done()) continue;
      ASSERT_TRUE(generation.advance().ok());
    }
  }
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(ids(generations[i]), alone[i]);
}

TEST_F(GenerationTest, ASecondAnswerFromThePromptEndIsTheSame) {
  load(4096);
  const std::vector<TokenId> prompt = some_tokens(300, 4);
  const GenerationLimits limits{.max_tokens = 250, .ignore_eos = true};
  Generation first = start(prompt, limits);
  run(first);
  backend_.script.rows = 0;
  ASSERT_EQ(session_->rewind(299), 299);  // the sliding window's blocks of the prompt end are still there
  Generation second = start({prompt.back()}, limits);
  run(second);
  EXPECT_EQ(ids(second), ids(first));
  EXPECT_EQ(backend_.script.rows, 250);  // one row a token: nothing else was computed again
}

TEST_F(GenerationTest, RefusesWhatCannotBeAnswered) {
  load(100);
  const auto refused = [&](std::vector<TokenId> prompt, GenerationLimits limits, std::string_view word) {
    auto sampler = Sampler::create(greedy(), kVocabSize);
    auto generation =
        Generation::start(*engine_, *session_, tokenizer_, std::move(*sampler), std::move(prompt), limits);
    ASSERT_FALSE(generation.ok());
    EXPECT_NE(generation.error().message().find(word), std::string::npos) << generation.error().message();
  };
  refused({}, {}, "empty");
  refused(some_tokens(101, 1), {}, "-c");
  refused({1}, {.stop = {"a", ""}}, "stop string");
  EXPECT_EQ(backend_.script.runs, 0);
}

TEST_F(GenerationTest, AFailingStepIsAnError) {
  load(100);
  Generation generation = start(some_tokens(10, 1), {.ignore_eos = true});
  ASSERT_TRUE(generation.advance().ok());
  backend_.script.poison = {1, 10, std::numeric_limits<float>::quiet_NaN()};
  const auto failed = generation.advance();
  ASSERT_FALSE(failed.ok());
  EXPECT_NE(failed.error().message().find("attn_out.0"), std::string::npos);
  EXPECT_EQ(session_->length(), 10);
}

TEST_F(GenerationTest, MeasuresTime) {
  load(4096, 4);
  Generation generation = start(some_tokens(10, 1), {.max_tokens = 5, .ignore_eos = true});
  EXPECT_EQ(generation.timing().ttft_ms, 0);
  run(generation);
  const Generation::Timing timing = generation.timing();
  EXPECT_GT(timing.ttft_ms, 0);
  EXPECT_NEAR(timing.prompt_tok_s, 10 / timing.ttft_ms * 1e3, 1e-6 * timing.prompt_tok_s);
  EXPECT_GT(timing.tpot_ms, 0);
  EXPECT_NEAR(timing.decode_tok_s, 1e3 / timing.tpot_ms, 1e-6 * timing.decode_tok_s);
}

TEST(GenerationText, ALeadingSpaceGoesOnlyWhereTheTextBegins) {
  Vocabulary vocabulary = sentencepiece_vocabulary({"\xE2\x96\x81hi"});
  vocabulary.add_space_prefix = true;
  const auto hi = static_cast<TokenId>(vocabulary.tokens.size()) - 1;
  const TokenId bos = vocabulary.bos.value_or(1);
  auto tokenizer = Tokenizer::create(std::move(vocabulary));
  ASSERT_TRUE(tokenizer.ok());
  for (const bool only_bos : {true, false}) {
    FakeBackend backend;
    backend.script.logits = [hi](std::int64_t, std::uint64_t, std::span<float> logits) {
      logits[static_cast<std::size_t>(hi)] = 10;
    };
    auto engine = Engine::create(fake_model({full_kind()}, 100, hi + 1), backend, {});
    ASSERT_TRUE(engine.ok());
    Session session = (*engine)->new_session();
    auto sampler = Sampler::create(greedy(), hi + 1);
    auto generation = Generation::start(**engine, session, *tokenizer, std::move(*sampler),
                                        only_bos ? std::vector<TokenId>{bos} : std::vector<TokenId>{bos, hi},
                                        {.max_tokens = 1});
    ASSERT_TRUE(generation.ok());
    EXPECT_EQ(*generation->advance(), only_bos ? "hi" : " hi");
  }
}

}  // namespace
}  // namespace eider
