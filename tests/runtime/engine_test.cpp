#include "runtime/engine.h"

#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <vector>

#include "tests/runtime/fake_backend.h"

namespace eider {
namespace {

using test::expected_digest;
using test::fake_model;
using test::FakeBackend;
using test::fill_logits;
using test::full_kind;
using test::kFakeVocab;
using test::sliding_kind;
using test::some_tokens;

const std::vector<KvKind> kKinds = {full_kind(), sliding_kind(150)};

std::unique_ptr<Engine> make_engine(FakeBackend& backend, EngineOptions options,
                                    std::int64_t context = 4096) {
  auto engine = Engine::create(fake_model(kKinds, context), backend, options);
  EXPECT_TRUE(engine.ok());
  return std::move(*engine);
}

std::vector<float> expected_logits(std::span<const TokenId> tokens, std::int64_t position) {
  std::vector<float> logits(kFakeVocab);
  fill_logits(expected_digest(tokens, position, kKinds), logits);
  return logits;
}

std::vector<float> copy(std::span<const float> row) {
  return {row.begin(), row.end()};
}

TEST(Engine, PromptChunksOfAnySizeSeeTheSame) {
  const std::vector<TokenId> tokens = some_tokens(1100, 5);
  for (const std::int64_t chunk : {1, 7, 32, 128, 512}) {
    FakeBackend backend;
    EngineOptions options;
    options.max_batch_tokens = chunk;
    auto engine = make_engine(backend, options);
    Session session = engine->new_session();
    ASSERT_TRUE(engine->prefill(session, tokens).ok());
    EXPECT_EQ(session.length(), 1100);
    EXPECT_EQ(engine->logit_rows(), 1);
    EXPECT_EQ(copy(engine->logits()), expected_logits(tokens, 1099)) << "chunk " << chunk;
    EXPECT_EQ(backend.script.runs, (1100 + chunk - 1) / chunk);
  }
}

TEST(Engine, SessionsOfDifferentLengthsShareSteps) {
  FakeBackend backend;
  EngineOptions options;
  options.max_batch_tokens = 64;
  options.max_logit_rows = 20;
  auto engine = make_engine(backend, options);
  constexpr std::size_t kSessions = 5;
  std::vector<Session> sessions;
  std::vector<std::vector<TokenId>> tokens;
  for (std::size_t i = 0; i < kSessions; ++i) {
    sessions.push_back(engine->new_session());
    tokens.push_back(some_tokens(700, i));
  }
  for (std::int64_t step = 0; sessions[4].length() < 600; ++step) {
    std::vector<Chunk> chunks;
    std::vector<std::pair<std::size_t, std::int64_t>> rows;  // (session, position) of each wanted row
    for (std::size_t i = 0; i < kSessions; ++i) {
      const auto count = static_cast<std::int64_t>(i) + 1;
      const std::int64_t begin = sessions[i].length();
      const auto wanted = static_cast<LogitsWanted>((step + static_cast<std::int64_t>(i)) % 3);
      chunks.push_back(
          {&sessions[i], std::span(tokens[i]).subspan(static_cast<std::size_t>(begin), i + 1), wanted});
      if (wanted == LogitsWanted::kLast) rows.push_back({i, begin + count - 1});
      for (std::int64_t p = begin; wanted == LogitsWanted::kAll && p < begin + count; ++p)
        rows.push_back({i, p});
    }
    ASSERT_TRUE(engine->forward(chunks).ok());
    ASSERT_EQ(engine->logit_rows(), static_cast<std::int64_t>(rows.size()));
    for (std::size_t row = 0; row < rows.size(); ++row) {
      ASSERT_EQ(copy(engine->logits(static_cast<std::int64_t>(row))),
                expected_logits(tokens[rows[row].first], rows[row].second));
    }
  }
}

TEST(Engine, StepsBesideAPausedOneChangeNothing) {
  FakeBackend backend;
  EngineOptions options;
  options.max_batch_tokens = 64;
  options.rows_beside = 3;
  auto engine = make_engine(backend, options);
  Session prompt = engine->new_session(), answer = engine->new_session();
  const std::vector<TokenId> tokens = some_tokens(500, 1), spoken = some_tokens(500, 2);
  const auto pause = [](std::size_t) { return true; };
  std::int64_t parts = 0;
  while (prompt.length() < 500) {
    const auto at = static_cast<std::size_t>(prompt.length());
    const Chunk chunk{&prompt, std::span(tokens).subspan(at, std::min<std::size_t>(64, 500 - at))};
    for (bool ended = false; !ended; ++parts) {
      const auto part = engine->forward_part({&chunk, 1}, pause);
      ASSERT_TRUE(part.ok());
      ended = *part;
      EXPECT_EQ(prompt.length(), static_cast<std::int64_t>(ended ? at + chunk.tokens.size() : at));
      if (ended) {
        EXPECT_EQ(copy(engine->logits()), expected_logits(tokens, prompt.length() - 1));
        break;
      }
      const Chunk next{&answer, std::span(spoken).subspan(static_cast<std::size_t>(answer.length()), 3)};
      ASSERT_TRUE(engine->forward({&next, 1}).ok());
      EXPECT_EQ(copy(engine->logits()), expected_logits(spoken, answer.length() - 1));
      const Chunk many{&answer, std::span(spoken).first(4)};
      EXPECT_FALSE(engine->forward({&many, 1}).ok());  // more than rows_beside
    }
  }
  EXPECT_EQ(parts, 8 * 3);  // four operations each, the last with the end
}

TEST(Engine, AnAbandonedStepLeavesItsSessionAsItWas) {
  FakeBackend backend;
  EngineOptions options;
  options.rows_beside = 1;
  auto engine = make_engine(backend, options);
  Session session = engine->new_session();
  const std::vector<TokenId> tokens = some_tokens(300, 1), others = some_tokens(300, 2);
  const Chunk chunk{&session, others};
  const auto paused = engine->forward_part({&chunk, 1}, [](std::size_t) { return true; });
  ASSERT_TRUE(paused.ok() && !*paused);
  engine->abandon_part();
  EXPECT_EQ(session.length(), 0);
  ASSERT_TRUE(engine->prefill(session, tokens).ok());
  EXPECT_EQ(copy(engine->logits()), expected_logits(tokens, 299));
}

TEST(Engine, ANewAnswerFromThePromptEndSeesThePromptOnly) {
  FakeBackend backend;
  auto engine = make_engine(backend, {});
  Session session = engine->new_session();
  std::vector<TokenId> tokens = some_tokens(500, 1);
  ASSERT_TRUE(engine->prefill(session, tokens).ok());
  session.mark_prompt_end();
  ASSERT_TRUE(engine->prefill(session, some_tokens(900, 2)).ok());
  ASSERT_EQ(session.rewind(499), 499);
  ASSERT_TRUE(engine->prefill(session, std::span(tokens).last(1)).ok());
  EXPECT_EQ(copy(engine->logits()), expected_logits(tokens, 499));
}

TEST(Engine, RefusesWhatAStepCannotHold) {
  FakeBackend backend;
  EngineOptions options;
  options.context = 100;
  options.max_batch_tokens = 8;
  options.max_logit_rows = 2;
  auto engine = make_engine(backend, options);
  Session session = engine->new_session();
  const std::vector<TokenId> tokens = some_tokens(101, 1);
  const auto refused = [&](std::vector<TokenId> ids, LogitsWanted wanted, std::string_view word) {
    const Chunk chunk{&session, ids, wanted};
    const Status status = engine->forward({&chunk, 1});
    ASSERT_FALSE(status.ok());
    EXPECT_NE(status.error().message().find(word), std::string::npos) << status.error().message();
    EXPECT_EQ(session.length(), 0);
  };
  refused(some_tokens(9, 1), LogitsWanted::kLast, "-ub");
  refused(some_tokens(3, 1), LogitsWanted::kAll, "logits");
  refused({1, -1}, LogitsWanted::kLast, "vocabulary");
  refused({kFakeVocab}, LogitsWanted::kLast, "vocabulary");
  const Status status = engine->prefill(session, tokens);
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().message().find("-c"), std::string::npos);
  EXPECT_EQ(session.length(), 0);
  EXPECT_EQ(backend.script.runs, 0);
  EXPECT_TRUE(engine->prefill(session, std::span(tokens).first(100)).ok());
}

TEST(Engine, NamesTheFirstValueThatIsNotFinite) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float infinity = std::numeric_limits<float>::infinity();
  const std::vector<std::pair<int, std::string>> places = {
      {0, "\"embedding\" (embed)"}, {2, "\"attn_out.1\" (add, layer 1)"}, {3, "\"logits\" (select_rows)"}};
  for (const float bad : {nan, infinity, -infinity}) {
    for (const auto& [value, words] : places) {
      FakeBackend backend;
      auto engine = make_engine(backend, {});
      Session session = engine->new_session();
      ASSERT_TRUE(engine->prefill(session, some_tokens(10, 3)).ok());
      const std::int64_t position = value == 3 ? 14 : 12;
      backend.script.poison = {value, position, bad};
      const Status status = engine->prefill(session, some_tokens(5, 4));
      ASSERT_FALSE(status.ok());
      const std::string expected = words + " at position " + std::to_string(position);
      EXPECT_NE(status.error().message().find(expected), std::string::npos) << status.error().message();
      EXPECT_EQ(session.length(), 10);

      backend.script.poison.reset();  // and the session is as good as before
      std::vector<TokenId> tokens = some_tokens(10, 3);
      const std::vector<TokenId> more = some_tokens(5, 9);
      tokens.insert(tokens.end(), more.begin(), more.end());
      ASSERT_TRUE(engine->prefill(session, more).ok());
      EXPECT_EQ(copy(engine->logits()), expected_logits(tokens, 14));
    }
  }
}

TEST(Engine, PrefillReportsProgressAndStopsWhenAsked) {
  FakeBackend backend;
  EngineOptions options;
  options.max_batch_tokens = 30;
  auto engine = make_engine(backend, options);
  Session session = engine->new_session();
  std::vector<std::int64_t> reports;
  const auto progress = [&](std::int64_t done, std::int64_t total) {
    EXPECT_EQ(total, 100);
    reports.push_back(done);
    return done < 60;
  };
  ASSERT_TRUE(engine->prefill(session, some_tokens(100, 1), progress).ok());
  EXPECT_EQ(reports, (std::vector<std::int64_t>{30, 60}));
  EXPECT_EQ(session.length(), 60);
}

TEST(Engine, RefusesOptionsOutOfRange) {
  FakeBackend backend;
  const auto refused = [&](EngineOptions options, std::string_view word) {
    auto engine = Engine::create(fake_model(kKinds, 4096), backend, options);
    ASSERT_FALSE(engine.ok());
    EXPECT_NE(engine.error().message().find(word), std::string::npos) << engine.error().message();
  };
  EngineOptions options;
  options.context = -5;
  refused(options, "-c");
  options.context = std::int64_t{1} << 40;
  refused(options, "-c");
  options = {};
  options.max_batch_tokens = 0;
  refused(options, "-ub");
  options = {};
  backend.compile_error = "no such op";
  refused(options, "no such op");
}

TEST(Engine, TheContextDefaultsToTheModelsOwn) {
  FakeBackend backend;
  auto engine = make_engine(backend, {}, 777);
  EXPECT_EQ(engine->options().context, 777);
  EXPECT_EQ(engine->new_session().max_context(), 777);
}

TEST(Engine, HandsTheObserverDown) {
  FakeBackend backend;
  auto engine = make_engine(backend, {});
  Session session = engine->new_session();
  std::vector<std::string> seen;
  const auto watch = [&](const Op&, ValueId id, const void*, std::int64_t) {
    seen.push_back(engine->model().plan.value(id).name);
  };
  const Observer observer(watch);
  const std::vector<TokenId> tokens = {1, 2};
  const Chunk chunk{&session, tokens, LogitsWanted::kLast};
  ASSERT_TRUE(engine->forward({&chunk, 1}, &observer).ok());
  EXPECT_EQ(seen, (std::vector<std::string>{"embedding", "attn_out.0", "attn_out.1", "logits"}));
}

}  // namespace
}  // namespace eider
