#include "runtime/perplexity.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
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
using test::some_tokens;

std::unique_ptr<Engine> make_engine(FakeBackend& backend, std::int64_t batch, std::int64_t logit_rows) {
  EngineOptions options;
  options.max_batch_tokens = batch;
  options.max_logit_rows = logit_rows;
  auto engine = Engine::create(fake_model({full_kind()}, 512), backend, options);
  EXPECT_TRUE(engine.ok());
  return std::move(*engine);
}

TEST(Perplexity, NllIsTheNegativeLogProbability) {
  const std::vector<float> logits = {1.5f, -2.0f, 0.25f, 80.0f, -300.0f, 79.5f};
  for (std::size_t id = 0; id < logits.size(); ++id) {
    long double sum = 0;
    for (const float logit : logits) sum += std::exp(static_cast<long double>(logit) - logits[id]);
    const auto expected = static_cast<double>(std::log(sum));
    EXPECT_NEAR(negative_log_likelihood(logits, static_cast<TokenId>(id)), expected, 2e-7 * (1 + expected));
  }
}

TEST(Perplexity, EveryChunkingGivesTheSame) {
  const std::vector<TokenId> ids = some_tokens(300, 8);
  std::vector<double> nll;
  std::vector<TokenId> argmax;
  long double sum = 0;
  for (std::int64_t i = 0; i < 300; ++i) {
    std::vector<float> logits(kFakeVocab);
    fill_logits(expected_digest(ids, i, {full_kind()}), logits);
    argmax.push_back(static_cast<TokenId>(std::max_element(logits.begin(), logits.end()) - logits.begin()));
    if (i + 1 == 300) break;
    nll.push_back(negative_log_likelihood(logits, ids[static_cast<std::size_t>(i) + 1]));
    sum += nll.back();
  }
  for (const auto& [batch, rows] :
       std::vector<std::pair<std::int64_t, std::int64_t>>{{512, 512}, {64, 10}, {7, 100}, {1, 1}}) {
    FakeBackend backend;
    auto engine = make_engine(backend, batch, rows);
    auto result = measure_perplexity(*engine, ids);
    ASSERT_TRUE(result.ok()) << result.error().message();
    EXPECT_EQ(result->nll, nll);
    EXPECT_EQ(result->argmax, argmax);
    EXPECT_NEAR(result->perplexity, static_cast<double>(std::exp(sum / 299)), 1e-9);
    EXPECT_EQ(engine->kv_pool().blocks_in_use(0), 0);
  }
}

TEST(Perplexity, ReportsProgressAndStopsWhenAsked) {
  FakeBackend backend;
  auto engine = make_engine(backend, 50, 50);
  const std::vector<TokenId> ids = some_tokens(300, 8);
  std::vector<std::int64_t> reports;
  const auto result = measure_perplexity(*engine, ids, [&](std::int64_t done, std::int64_t total) {
    EXPECT_EQ(total, 300);
    reports.push_back(done);
    return done < 100;
  });
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(reports, (std::vector<std::int64_t>{50, 100}));
  EXPECT_EQ(result->argmax.size(), 100u);
  EXPECT_EQ(result->nll.size(), 99u);
}

TEST(Perplexity, RefusesTooFewAndTooMany) {
  FakeBackend backend;
  auto engine = make_engine(backend, 50, 50);
  EXPECT_FALSE(measure_perplexity(*engine, some_tokens(1, 1)).ok());
  const auto overflow = measure_perplexity(*engine, some_tokens(513, 1));
  ASSERT_FALSE(overflow.ok());
  EXPECT_NE(overflow.error().message().find("-c"), std::string::npos);
  EXPECT_EQ(backend.script.runs, 0);
  EXPECT_TRUE(measure_perplexity(*engine, some_tokens(512, 1)).ok());
}

}  // namespace
}  // namespace eider
