// Attention: by the letter over contexts, windows and caps, and close to a softmax in double.
#include <gtest/gtest.h>

#include "tests/support/literal_numerics.h"
#include "tests/support/plan_run.h"
#include "tests/support/random_floats.h"

namespace eider::test {
namespace {

struct AttentionCase {
  std::int64_t tokens, heads, kv_heads, head_dim, window;
  float softcap;
  KvType kv_type;
  bool salted = false;
};

std::ostream& operator<<(std::ostream& out, const AttentionCase& c) {
  return out << c.tokens << " tokens, " << c.heads << ":" << c.kv_heads << " heads of " << c.head_dim
             << ", window " << c.window << ", cap " << c.softcap
             << (c.kv_type == KvType::kF16 ? ", F16" : ", F32") << (c.salted ? ", salted" : "");
}

class AttentionTest : public testing::TestWithParam<AttentionCase> {
 protected:
  AttentionTest() {
    const AttentionCase& c = GetParam();
    RandomFloats random(static_cast<std::uint64_t>(c.tokens + c.head_dim));
    const auto floats = [&](std::int64_t heads) {
      return c.salted ? random.salted(c.tokens * heads, c.head_dim)
                      : random.normal(c.tokens * heads * c.head_dim, 2);
    };
    q_ = floats(c.heads);
    k_ = floats(c.kv_heads);
    v_ = floats(c.kv_heads);
    scale_ = 1.0f / std::sqrt(static_cast<float>(c.head_dim));
  }

  std::vector<std::uint32_t> run(const RunManner& manner) {
    const AttentionCase& c = GetParam();
    TestPlan test;
    const int kind = test.recorder.kv_kind({"kind", 0, c.kv_heads, c.head_dim, c.window});
    test.recorder.kv_slot(kind);  // another layer's place before ours
    const KvSlot slot = test.recorder.kv_slot(kind);
    test.recorder.store_kv(test.input(k_, c.kv_heads * c.head_dim), test.input(v_, c.kv_heads * c.head_dim),
                           slot);
    const ValueId out =
        test.recorder.attention(test.input(q_, c.heads * c.head_dim), slot, c.heads, scale_, c.softcap);
    const Plan plan = test.finish(out);
    return run_plan(plan, places_in_order(c.tokens), manner, c.kv_type)[static_cast<std::size_t>(out.index)];
  }

  /// Vectors of one head at positions 0..tokens-1, as they are stored.
  std::vector<literal::Floats> stored(const std::vector<float>& x, std::int64_t head) const {
    const AttentionCase& c = GetParam();
    std::vector<literal::Floats> vectors;
    for (std::int64_t token = 0; token < c.tokens; ++token) {
      const auto begin = x.begin() + (token * c.kv_heads + head) * c.head_dim;
      literal::Floats& vector = vectors.emplace_back(begin, begin + c.head_dim);
      if (c.kv_type == KvType::kF16)
        for (float& value : vector) value = half_to_float(float_to_half(value));
    }
    return vectors;
  }

  /// Calls visit(token, head, query, keys, values, first visible position).
  template <class Visit>
  void for_each_query(Visit visit) const {
    const AttentionCase& c = GetParam();
    for (std::int64_t head = 0; head < c.heads; ++head) {
      const auto keys = stored(k_, head / (c.heads / c.kv_heads)),
                 values = stored(v_, head / (c.heads / c.kv_heads));
      for (std::int64_t token = 0; token < c.tokens; ++token)
        visit(token, head,
              std::span(q_).subspan(static_cast<std::size_t>((token * c.heads + head) * c.head_dim),
                                    static_cast<std::size_t>(c.head_dim)),
              keys, values, c.window == 0 ? 0 : std::max<std::int64_t>(0, token - c.window + 1));
    }
  }

  std::vector<float> q_, k_, v_;
  float scale_;
};

TEST_P(AttentionTest, FollowsTheLetter) {
  const AttentionCase& c = GetParam();
  const std::vector<float> y = floats_of(run({}));
  for_each_query([&](std::int64_t token, std::int64_t head, auto q, const auto& keys, const auto& values,
                     std::int64_t first) {
    const literal::Floats expected = literal::attention(q, keys, values, static_cast<std::size_t>(first),
                                                        static_cast<std::size_t>(token), scale_, c.softcap);
    const auto begin = y.begin() + (token * c.heads + head) * c.head_dim;
    const std::vector<float> actual(begin, begin + c.head_dim);
    std::vector<std::uint32_t> bits(actual.size());
    std::memcpy(bits.data(), actual.data(), 4 * actual.size());
    ASSERT_TRUE(same_bits(expected, bits)) << "token " << token << ", head " << head;
  });
}

/// Cases of finite inputs.
class FiniteAttentionTest : public AttentionTest {};

TEST_P(FiniteAttentionTest, IsCloseToTheExactSoftmax) {
  const AttentionCase& c = GetParam();
  const std::vector<float> y = floats_of(run({}));
  for_each_query([&](std::int64_t token, std::int64_t head, auto q, const auto& keys, const auto& values,
                     std::int64_t first) {
    std::vector<double> weights;
    double sum = 0;
    for (auto i = static_cast<std::size_t>(first); i <= static_cast<std::size_t>(token); ++i) {
      double score = 0;
      for (std::size_t d = 0; d < q.size(); ++d) score += static_cast<double>(q[d]) * keys[i][d];
      score *= scale_;
      if (c.softcap != 0) score = c.softcap * std::tanh(score / c.softcap);
      weights.push_back(std::exp(score));
      sum += weights.back();
    }
    for (std::size_t d = 0; d < q.size(); ++d) {
      double exact = 0;
      for (std::size_t i = 0; i < weights.size(); ++i)
        exact += weights[i] / sum * values[static_cast<std::size_t>(first) + i][d];
      ASSERT_NEAR(y[static_cast<std::size_t>((token * c.heads + head) * c.head_dim) + d], exact, 3e-5)
          << "token " << token << ", head " << head;
    }
  });
}

TEST_P(AttentionTest, DoesNotDependOnStepsOrThreads) {
  const std::int64_t tokens = GetParam().tokens;
  const std::vector<std::uint32_t> whole = run({});
  const auto same = [&](const RunManner& manner) {
    return same_bits(std::span<const std::uint32_t>(whole), std::span<const std::uint32_t>(run(manner)));
  };
  const std::vector<std::int64_t> one_by_one(static_cast<std::size_t>(tokens), 1);
  EXPECT_TRUE(same({.threads = 3, .steps = one_by_one}));
  EXPECT_TRUE(same({.threads = 16, .steps = {tokens / 3, tokens - tokens / 3}}));
  for (const std::string& backend : other_backends()) {
    EXPECT_TRUE(same({.threads = 1, .backend = backend})) << backend;
    EXPECT_TRUE(same({.threads = 5, .backend = backend, .steps = {tokens / 3, tokens - tokens / 3}}))
        << backend;
    // Steps of a few tokens are split over blocks where the KV heads do not fill the threads.
    EXPECT_TRUE(same({.threads = 5, .backend = backend, .steps = one_by_one})) << backend;
  }
}

const std::vector<AttentionCase> kFiniteCases = {
    {1, 2, 1, 16, 0, 0, KvType::kF32},         {20, 4, 2, 32, 0, 0, KvType::kF16},
    {260, 5, 1, 80, 0, 0, KvType::kF16},       {150, 6, 1, 64, 0, 0, KvType::kF32},
    {150, 7, 1, 64, 0, 0, KvType::kF16},       {260, 8, 1, 128, 0, 30, KvType::kF16},
    {400, 4, 1, 96, 129, 0, KvType::kF16},     {260, 18, 2, 32, 0, 0, KvType::kF32},
    {130, 3, 3, 64, 0, 0, KvType::kF16},       {300, 3, 1, 40, 0, 0, KvType::kF32},
    {300, 2, 1, 96, 150, 0, KvType::kF32},     {290, 2, 2, 33, 20, 0, KvType::kF16},
    {200, 2, 1, 128, 128, 2.5f, KvType::kF16}, {140, 2, 1, 256, 1, 0, KvType::kF32}};
INSTANTIATE_TEST_SUITE_P(Finite, AttentionTest, testing::ValuesIn(kFiniteCases));
INSTANTIATE_TEST_SUITE_P(Finite, FiniteAttentionTest, testing::ValuesIn(kFiniteCases));
INSTANTIATE_TEST_SUITE_P(Salted, AttentionTest,
                         testing::Values(AttentionCase{270, 4, 2, 32, 0, 0, KvType::kF32, true},
                                         AttentionCase{270, 4, 2, 32, 50, 0, KvType::kF16, true}));

// Rows of several sequences in one step see their own blocks alone.
TEST(Attention, SequencesDoNotMeet) {
  constexpr std::int64_t kTokens = 150, kDim = 32;
  RandomFloats random(9);
  const std::vector<float> q = random.normal(kTokens * kDim), k = random.normal(kTokens * kDim),
                           v = random.normal(kTokens * kDim);
  TestPlan test;
  const KvSlot slot = test.recorder.kv_slot(test.recorder.kv_kind({"full", 0, 1, kDim, 0}));
  test.recorder.store_kv(test.input(k, kDim), test.input(v, kDim), slot);
  const ValueId out = test.recorder.attention(test.input(q, kDim), slot, 1, 0.2f);
  const Plan plan = test.finish(out);
  const auto run = [&](const RowPlaces& places, std::vector<std::int64_t> steps,
                       const std::string& backend = "reference") {
    return floats_of(run_plan(
        plan, places,
        {.threads = 2, .backend = backend, .steps = std::move(steps)})[static_cast<std::size_t>(out.index)]);
  };
  // Rows 0..49 are sequence 2, 50..99 sequence 0, and the rest sequence 1; then the same with sequence 1
  // alone.
  RowPlaces places;
  for (std::int32_t row = 0; row < kTokens; ++row) {
    places.positions.push_back(row % 50);
    places.sequence.push_back(row < 50 ? 2 : row < 100 ? 0 : 1);
  }
  const std::vector<float> together = run(places, {});
  for (const std::string& backend : other_backends()) {
    EXPECT_EQ(together, run(places, {}, backend)) << backend;
    EXPECT_EQ(together, run(places, {48, 4, 96, 2}, backend)) << backend;
  }
  for (std::int32_t& sequence : places.sequence) sequence = (sequence + 1) % 3;
  const std::vector<float> apart = run(places, {50, 50, 50});
  EXPECT_EQ(together, apart);
}

// Runs of two sequences, of several blocks, in each step: so few rows that blocks may be shared out.
TEST(Attention, SplitStepsOfSeveralSequences) {
  constexpr std::int64_t kTokens = 640, kDim = 32;
  RandomFloats random(10);
  const std::vector<float> q = random.normal(kTokens * 3 * kDim), k = random.normal(kTokens * kDim),
                           v = random.normal(kTokens * kDim);
  for (const std::int64_t window : {0, 140})
    for (const std::int64_t step : {4, 8, 16}) {
      TestPlan test;
      const KvSlot slot = test.recorder.kv_slot(test.recorder.kv_kind({"kind", 0, 1, kDim, window}));
      test.recorder.store_kv(test.input(k, kDim), test.input(v, kDim), slot);
      const ValueId out = test.recorder.attention(test.input(q, 3 * kDim), slot, 3, 0.2f);
      const Plan plan = test.finish(out);
      RowPlaces places;  // all rows of a step but the last are of sequence 0
      std::int32_t length[2] = {};
      for (std::int64_t row = 0; row < kTokens; ++row) {
        const std::int32_t sequence = row % step == step - 1;
        places.sequence.push_back(sequence);
        places.positions.push_back(length[sequence]++);
      }
      const std::vector<std::int64_t> steps(static_cast<std::size_t>(kTokens / step), step);
      const auto expected = run_plan(plan, places, {.threads = 1});
      for (const std::string& backend : other_backends())
        for (const int threads : {2, 3, 4})
          EXPECT_TRUE(same_values(plan, expected, run_plan(plan, places, {threads, backend, steps})))
              << backend << ", " << threads << " threads, window " << window << ", steps of " << step;
    }
}

}  // namespace
}  // namespace eider::test
