#include "runtime/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <set>
#include <vector>

#include "base/random.h"
#include "tests/runtime/sampler_helpers.h"

namespace eider {
namespace {

std::vector<TokenId> ids(const Candidates& list) {
  std::vector<TokenId> out;
  for (const Sampler::Candidate& candidate : list) out.push_back(candidate.id);
  return out;
}

// The chain as docs/SAMPLING.md defines it, by full sorts and long double; independent of the code under
// test.
struct Naive {
  struct Token {
    TokenId id;
    float logit;
    long double probability = 0;
  };
  std::vector<Token> tokens;

  void softmax() {
    std::stable_sort(tokens.begin(), tokens.end(),
                     [](const Token& a, const Token& b) { return a.logit > b.logit; });
    long double total = 0;
    for (Token& token : tokens) {
      total += token.probability = std::exp(static_cast<long double>(token.logit) - tokens[0].logit);
    }
    for (Token& token : tokens) token.probability /= total;
  }

  void keep_mass(long double mass) {
    long double sum = 0;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      sum += tokens[i].probability;
      if (sum >= mass) {
        tokens.resize(i + 1);
        break;
      }
    }
    std::sort(tokens.begin(), tokens.end(), [](const Token& a, const Token& b) { return a.id < b.id; });
  }

  void apply(SamplerStage stage, const SamplerOptions& options, const std::vector<TokenId>& history) {
    switch (stage) {
      case SamplerStage::kPenalties:
        for (Token& token : tokens) {
          const auto first = options.penalty_last_n < 0 || options.penalty_last_n > std::ssize(history)
                                 ? history.begin()
                                 : history.end() - options.penalty_last_n;
          const auto count = std::count(first, history.end(), token.id);
          if (count == 0) continue;
          token.logit =
              token.logit < 0 ? token.logit * options.repeat_penalty : token.logit / options.repeat_penalty;
          token.logit -= static_cast<float>(count) * options.frequency_penalty + options.presence_penalty;
        }
        break;
      case SamplerStage::kLogitBias:
        for (Token& token : tokens) {
          if (options.logit_bias.contains(token.id)) token.logit += options.logit_bias.at(token.id);
        }
        break;
      case SamplerStage::kTemperature:
        for (Token& token : tokens) token.logit /= options.temperature;
        break;
      case SamplerStage::kTopK:
        softmax();
        if (options.top_k > 0 && options.top_k < std::ssize(tokens)) {
          tokens.resize(static_cast<std::size_t>(options.top_k));
        }
        keep_mass(2);
        break;
      case SamplerStage::kTypical: {
        if (options.typical_p >= 1) break;
        softmax();
        long double entropy = 0;
        for (const Token& token : tokens) entropy -= token.probability * std::log(token.probability);
        std::stable_sort(tokens.begin(), tokens.end(), [&](const Token& a, const Token& b) {
          return std::fabs(-std::log(a.probability) - entropy) <
                 std::fabs(-std::log(b.probability) - entropy);
        });
        keep_mass(options.typical_p);
        break;
      }
      case SamplerStage::kTopP:
        if (options.top_p >= 1) break;
        softmax();
        keep_mass(options.top_p);
        break;
      case SamplerStage::kMinP:
        softmax();
        std::erase_if(tokens, [&, best = tokens[0].probability](const Token& token) {
          return token.probability < options.min_p * best;
        });
        keep_mass(2);
        break;
    }
  }
};

TEST(Sampler, EqualsTheFullDefinitionInAnyOrderOfStages) {
  std::mt19937 random(1);
  const auto uniform = [&](float low, float high) {
    return std::uniform_real_distribution<float>(low, high)(random);
  };
  for (int trial = 0; trial < 600; ++trial) {
    SamplerOptions options = plain();
    options.temperature = uniform(0.3f, 2);
    if (trial % 2 == 0) options.top_k = std::uniform_int_distribution<int>(1, 150)(random);
    if (trial % 3 == 0) options.top_p = uniform(0, 1);
    if (trial % 5 < 2) options.min_p = uniform(0, 0.5f);
    if (trial % 4 == 1) options.typical_p = uniform(0.05f, 1);
    if (trial % 3 == 1) options.repeat_penalty = uniform(0.5f, 2);
    if (trial % 3 == 2) options.frequency_penalty = uniform(-1, 1);
    if (trial % 6 == 2) options.presence_penalty = uniform(-1, 1);
    options.penalty_last_n = std::uniform_int_distribution<int>(-1, 60)(random);
    if (trial % 7 == 0) options.logit_bias = {{3, 2.5f}, {99, -4.0f}};
    options.stages = *parse_sampler_stages(default_sampler_stages());
    if (trial % 4 != 0) std::shuffle(options.stages.begin(), options.stages.end(), random);

    const std::vector<float> logits = random_logits(random, 120, uniform(0.1f, 4), trial % 3 == 0);
    std::vector<TokenId> history;
    for (int i = 0; i < 50; ++i) history.push_back(std::uniform_int_distribution<int>(0, 119)(random));

    Naive naive;
    for (std::size_t id = 0; id < logits.size(); ++id)
      naive.tokens.push_back({static_cast<TokenId>(id), logits[id]});
    for (const SamplerStage stage : options.stages) naive.apply(stage, options, history);
    naive.softmax();

    const Candidates kept = candidates(options, logits, history);
    ASSERT_EQ(kept.size(), naive.tokens.size()) << "trial " << trial;
    double total = 0;
    for (const Sampler::Candidate& candidate : kept) total += candidate.weight;
    for (std::size_t rank = 0; rank < kept.size(); ++rank) {
      ASSERT_EQ(kept[rank].id, naive.tokens[rank].id) << "trial " << trial << " rank " << rank;
      ASSERT_NEAR(kept[rank].weight / total, static_cast<double>(naive.tokens[rank].probability), 1e-6);
    }
  }
}

// Sizes on both sides of where the way of sorting changes.
TEST(Sampler, RanksWholeVocabulariesByWeightThenId) {
  std::mt19937 random(5);
  for (const std::size_t size : {2047u, 2048u, 50000u}) {
    for (const bool with_ties : {false, true}) {
      const std::vector<float> logits = random_logits(random, size, 5, with_ties);
      const Candidates kept = candidates(plain(), logits);
      ASSERT_EQ(kept.size(), size);
      for (std::size_t rank = 1; rank < size; ++rank) {
        const Sampler::Candidate& a = kept[rank - 1];
        const Sampler::Candidate& b = kept[rank];
        ASSERT_TRUE(a.weight > b.weight || (a.weight == b.weight && a.id < b.id)) << rank;
      }
      std::set<TokenId> seen;
      for (const Sampler::Candidate& candidate : kept) {
        seen.insert(candidate.id);
        ASSERT_EQ(candidate.logit, logits[static_cast<std::size_t>(candidate.id)]);
      }
      ASSERT_EQ(seen.size(), size);
    }
  }
}

TEST(Sampler, TopKKeepsExactlyKLowestIdsFirst) {
  std::vector<float> logits(1000, 0.0f);
  logits[700] = 1;
  SamplerOptions options = plain();
  for (const std::int64_t k : {1, 2, 40, 999, 1000, 5000}) {
    options.top_k = k;
    const Candidates kept = candidates(options, logits);
    ASSERT_EQ(std::ssize(kept), std::min<std::int64_t>(k, 1000));
    EXPECT_EQ(kept[0].id, 700);
    for (std::size_t rank = 1; rank < kept.size(); ++rank) {
      ASSERT_EQ(kept[rank].id, static_cast<TokenId>(rank <= 700 ? rank - 1 : rank));
    }
  }
}

TEST(Sampler, FiltersAlwaysLeaveOne) {
  const std::vector<float> logits = {1, 3, 3, 2};
  for (const SamplerStage stage :
       {SamplerStage::kTopK, SamplerStage::kTypical, SamplerStage::kTopP, SamplerStage::kMinP}) {
    SamplerOptions options = plain();
    options.stages = {stage};
    options.top_k = 1;
    options.typical_p = 0;
    options.top_p = 0;
    options.min_p = 1;
    const std::size_t expected = stage == SamplerStage::kMinP ? 2 : 1;  // two are as likely as the likeliest
    EXPECT_EQ(candidates(options, logits).size(), expected) << static_cast<int>(stage);
  }
}

// Equal weights have exact sums, so that the boundary itself can be tested: at least the share, and no more.
TEST(Sampler, HeadsThatReachTheirShareExactlyEndThere) {
  const std::vector<float> logits(8, 0.5f);
  SamplerOptions options = plain();
  options.top_p = 0.5f;
  EXPECT_EQ(ids(candidates(options, logits)), (std::vector<TokenId>{0, 1, 2, 3}));
  options = plain();
  options.typical_p = 0.25f;
  EXPECT_EQ(ids(candidates(options, logits)), (std::vector<TokenId>{0, 1}));
}

TEST(Sampler, DrawsTheFirstRankWhoseSumExceedsTheDraw) {
  std::mt19937 random(2);
  SamplerOptions options = plain();
  options.top_k = 30;
  options.seed = 0x123456789abcdef0u;
  options.choice = 3;
  const std::vector<float> logits = random_logits(random, 500, 2, false);
  const Candidates kept = candidates(options, logits);
  double total = 0;
  for (const Sampler::Candidate& candidate : kept) total += candidate.weight;
  Sampler sampler = make(options, logits.size());
  for (std::int64_t position = 0; position < 2000; ++position) {
    const double threshold = uniform_draw(options.seed, static_cast<std::uint64_t>(position), 3) * total;
    double sum = 0;
    std::size_t rank = 0;
    while ((sum += kept[rank].weight) <= threshold) ++rank;
    ASSERT_EQ(sampler.sample(logits, {}, position), kept[rank].id);
  }
}

TEST(Sampler, FrequenciesFollowTheProbabilities) {
  const std::vector<float> logits = {0.1f, -1.0f, 2.0f, 1.3f, 0.0f, -0.5f, 1.3f, -3.0f};
  SamplerOptions options = plain();
  options.temperature = 0.9f;
  std::vector<double> probability(logits.size());
  double total = 0;
  for (std::size_t id = 0; id < logits.size(); ++id) {
    total += probability[id] = std::exp(static_cast<double>(logits[id]) / 0.9);
  }
  for (const std::uint64_t seed : {1u, 2u, 3u}) {
    options.seed = seed;
    Sampler sampler = make(options, logits.size());
    constexpr int kDraws = 100000;
    std::vector<int> count(logits.size(), 0);
    for (int position = 0; position < kDraws; ++position) {
      ++count[static_cast<std::size_t>(sampler.sample(logits, {}, position))];
    }
    double chi_squared = 0;
    for (std::size_t id = 0; id < logits.size(); ++id) {
      const double expected = probability[id] / total * kDraws;
      chi_squared += (count[id] - expected) * (count[id] - expected) / expected;
    }
    EXPECT_LT(chi_squared, 24.3);  // 7 degrees of freedom: exceeded once in a thousand
    EXPECT_GT(chi_squared, 0.5);   // and below this as rarely: too even is wrong as well
  }
}

TEST(Sampler, ADrawDependsOnSeedPositionAndChoiceOnly) {
  std::mt19937 random(3);
  const std::vector<float> logits = random_logits(random, 200, 1, false);
  SamplerOptions options = plain();
  options.seed = 42;
  const auto draws = [&](const SamplerOptions& with, std::int64_t step) {
    Sampler sampler = make(with, logits.size());
    std::vector<TokenId> out(100);
    for (std::int64_t i = 0; i < 100; ++i) {
      const std::int64_t position = step > 0 ? i : 99 - i;  // in any order
      out[static_cast<std::size_t>(position)] = sampler.sample(logits, {}, position);
    }
    return out;
  };
  const std::vector<TokenId> first = draws(options, 1);
  EXPECT_EQ(draws(options, -1), first);
  SamplerOptions other = options;
  other.seed = 43;
  EXPECT_NE(draws(other, 1), first);
  other = options;
  other.seed = 42 + (std::uint64_t{1} << 32);
  EXPECT_NE(draws(other, 1), first);
  other = options;
  other.choice = 1;
  EXPECT_NE(draws(other, 1), first);
}

TEST(Sampler, PenaltiesAsDefined) {
  const std::vector<float> logits = {2, -2, 1, 0, 3};
  const std::vector<TokenId> history = {4, 0, 1, 0, 0};
  const auto logit_of = [&](const SamplerOptions& options, TokenId id) {
    for (const Sampler::Candidate& candidate : candidates(options, logits, history)) {
      if (candidate.id == id) return candidate.logit;
    }
    return kInfinity;
  };
  SamplerOptions options = plain();
  options.repeat_penalty = 2;
  EXPECT_EQ(logit_of(options, 0), 1.0f);   // divided, once however often it was there
  EXPECT_EQ(logit_of(options, 1), -4.0f);  // negative: multiplied
  EXPECT_EQ(logit_of(options, 2), 1.0f);   // was not there
  EXPECT_EQ(logit_of(options, 4), 1.5f);
  options.penalty_last_n = 4;
  EXPECT_EQ(logit_of(options, 4), 3.0f);  // too long ago
  options.penalty_last_n = 0;
  EXPECT_EQ(logit_of(options, 0), 2.0f);
  options.penalty_last_n = -1;
  options.repeat_penalty = 1;
  options.frequency_penalty = 0.25f;
  options.presence_penalty = 0.5f;
  EXPECT_EQ(logit_of(options, 0), 2.0f - 3 * 0.25f - 0.5f);
  EXPECT_EQ(logit_of(options, 1), -2.0f - 0.25f - 0.5f);
  EXPECT_EQ(logit_of(options, 3), 0.0f);
}

TEST(Sampler, PenaltiesForgetTheCallBefore) {
  const std::vector<float> logits = {1, 1, 1};
  SamplerOptions options = plain();
  options.presence_penalty = 1;
  Sampler sampler = make(options, 3);
  const std::vector<TokenId> first = {0, 1, 1};
  EXPECT_EQ(sampler.candidates(logits, first)[0].id, 2);
  const std::vector<TokenId> second = {1};
  EXPECT_EQ(sampler.candidates(logits, second)[0].id, 0);
}

TEST(Sampler, LogitBiasBansAndPrefers) {
  const std::vector<float> logits = {5, 1, 1};
  SamplerOptions options = plain();
  options.logit_bias = {{0, -kInfinity}, {2, 3.0f}};
  const Candidates kept = candidates(options, logits);
  EXPECT_EQ(ids(kept), (std::vector<TokenId>{2, 1, 0}));
  EXPECT_EQ(kept[0].logit, 4.0f);
  EXPECT_EQ(kept[2].weight, 0.0f);
  Sampler sampler = make(options, 3);
  for (std::int64_t position = 0; position < 1000; ++position)
    EXPECT_NE(sampler.sample(logits, {}, position), 0);

  options.stages = {SamplerStage::kTopK,
                    SamplerStage::kLogitBias};  // bans all that is left: the ban cannot hold
  options.top_k = 1;
  EXPECT_EQ(make(options, 3).sample(logits, {}, 0), 0);
}

TEST(Sampler, TemperatureZeroIsArgmaxOfThePenalisedLogits) {
  SamplerOptions options;
  options.temperature = 0;
  options.typical_p = 0.01f;  // filters do not matter: the likeliest token is rarely the most typical
  const std::vector<float> logits = {1, 4, 4, 3.9f, 0};
  EXPECT_EQ(make(options, 5).sample(logits, {}, 0), 1);
  options.stages = {SamplerStage::kTypical, SamplerStage::kPenalties};
  options.repeat_penalty = 1.5f;
  const std::vector<TokenId> history = {1, 2};
  EXPECT_EQ(make(options, 5).sample(logits, history, 2), 3);
  options.stages = {SamplerStage::kTopK};  // a stage left out is off
  EXPECT_EQ(make(options, 5).sample(logits, history, 2), 1);
}

TEST(Sampler, ExtremeLogitsStaySane) {
  const float most = std::numeric_limits<float>::max();
  for (const std::vector<float>& logits :
       std::vector<std::vector<float>>{{most, -most, 0, most}, {-most, -most}, {0, -0.0f, 1e-45f}, {7}}) {
    for (const float temperature : {1e-6f, 0.5f, 1.0f, 1e6f}) {
      SamplerOptions options;
      options.temperature = temperature;
      options.typical_p = 0.5f;
      options.repeat_penalty = 0.001f;
      options.frequency_penalty = -1000;
      const std::vector<TokenId> history(5, 0);
      const TokenId id = make(options, logits.size()).sample(logits, history, 5);
      EXPECT_GE(id, 0);
      EXPECT_LT(id, std::ssize(logits));
    }
  }
  SamplerOptions cold = plain();
  cold.temperature = 1e-6f;
  EXPECT_EQ(make(cold, 3).sample(std::vector<float>{9.5f, 10, 9.999f}, {}, 0), 1);
}

TEST(SamplerStages, ParseByNameInAnyOrder) {
  EXPECT_EQ(default_sampler_stages(), "penalties;logit_bias;top_k;typical;top_p;min_p;temperature");
  EXPECT_EQ(parse_sampler_stages(default_sampler_stages())->size(), 7u);
  EXPECT_EQ(
      *parse_sampler_stages("temperature,top_k;min_p"),
      (std::vector<SamplerStage>{SamplerStage::kTemperature, SamplerStage::kTopK, SamplerStage::kMinP}));
  for (const char* wrong :
       {"", "top-k", "top_k;", ";top_k", "top_k;;min_p", "top_k top_p", "top_k;top_p;top_k"}) {
    auto stages = parse_sampler_stages(wrong);
    ASSERT_FALSE(stages.ok()) << wrong;
    EXPECT_NE(stages.error().message().find("--samplers"), std::string::npos);
  }
  EXPECT_NE(parse_sampler_stages("mirostat").error().message().find("min_p"), std::string::npos);
}

TEST(SamplerOptions, OutOfRangeNamesTheFlag) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const auto refused = [](SamplerOptions options, std::string_view flag) {
    auto sampler = Sampler::create(options, 100);
    ASSERT_FALSE(sampler.ok()) << flag;
    EXPECT_NE(sampler.error().message().find(flag), std::string::npos) << sampler.error().message();
    EXPECT_EQ(sampler.error().message().find('\n'), std::string::npos);
  };
  for (const float wrong : {-1.0f, 1.01f, nan, kInfinity}) {
    SamplerOptions options;
    options.top_p = wrong;
    refused(options, "--top-p");
    options = {};
    options.min_p = wrong;
    refused(options, "--min-p");
    options = {};
    options.typical_p = wrong;
    refused(options, "--typical");
  }
  for (const float wrong : {-0.5f, nan, kInfinity, 1e-30f}) {
    SamplerOptions options;
    options.temperature = wrong;
    refused(options, "--temp");
    options = {};
    options.repeat_penalty = wrong;
    refused(options, "--repeat-penalty");
  }
  SamplerOptions options;
  options.top_k = -1;
  refused(options, "--top-k");
  options = {};
  options.frequency_penalty = nan;
  refused(options, "--frequency-penalty");
  options = {};
  options.presence_penalty = kInfinity;
  refused(options, "--presence-penalty");
  options = {};
  options.penalty_last_n = -2;
  refused(options, "--repeat-last-n");
  for (const auto& [id, bias] :
       std::vector<std::pair<TokenId, float>>{{-1, 0.f}, {100, 0.f}, {5, nan}, {5, kInfinity}}) {
    options = {};
    options.logit_bias = {{id, bias}};
    refused(options, "--logit-bias");
  }
}

// A token that a mask leaves out might as well have been banned by its bias.
TEST(Sampler, AMaskLeavesOutTokens) {
  constexpr std::int64_t kVocab = 200;
  std::mt19937 random(3);
  std::vector<float> logits(kVocab);
  for (float& logit : logits) logit = std::uniform_real_distribution<float>(-4, 4)(random);
  std::vector<std::uint64_t> allowed((kVocab + 63) / 64, 0);
  SamplerOptions options, banning;
  options.top_k = banning.top_k = 20;
  for (TokenId id = 0; id < kVocab; ++id) {
    if (id % 3 == 1)
      allowed[static_cast<std::size_t>(id) / 64] |= std::uint64_t{1} << (id % 64);
    else
      banning.logit_bias[id] = -kInfinity;
  }
  for (const float temperature : {0.0f, 0.9f}) {
    options.temperature = banning.temperature = temperature;
    Sampler masked = *Sampler::create(options, kVocab), banned = *Sampler::create(banning, kVocab);
    for (std::int64_t position = 0; position < 300; ++position)
      ASSERT_EQ(masked.sample(logits, {}, position, allowed), banned.sample(logits, {}, position));
  }
}

}  // namespace
}  // namespace eider
