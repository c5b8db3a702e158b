#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "base/random.h"
#include "ops/numerics.h"
#include "runtime/sampler.h"
#include "tests/runtime/sampler_helpers.h"

namespace eider {
namespace {

// Filters and the draw as docs/SAMPLING.md words them, over one list that is sorted anew for each: what the
// faster ways of Sampler must equal to the last bit.
struct Plain {
  Candidates list;

  double rank() {
    float best = list[0].logit;
    for (const Sampler::Candidate& candidate : list) best = std::max(best, candidate.logit);
    for (Sampler::Candidate& candidate : list)
      candidate.weight = candidate.logit == best ? 1.0f : numerics::exp32(candidate.logit - best);
    std::sort(list.begin(), list.end(), [](const auto& a, const auto& b) {
      return a.weight != b.weight ? a.weight > b.weight : a.id < b.id;
    });
    double total = 0;
    for (const Sampler::Candidate& candidate : list) total += candidate.weight;
    return total;
  }

  void filter(SamplerStage stage, const SamplerOptions& options) {
    if (stage == SamplerStage::kTemperature) {
      for (Sampler::Candidate& candidate : list) candidate.logit = candidate.logit / options.temperature;
    } else if (stage == SamplerStage::kTopK && options.top_k > 0 && options.top_k < std::ssize(list)) {
      std::sort(list.begin(), list.end(), [](const auto& a, const auto& b) {
        return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
      });
      list.resize(static_cast<std::size_t>(options.top_k));
    } else if (stage == SamplerStage::kTopP && options.top_p < 1) {
      const double share = static_cast<double>(options.top_p) * rank();
      double sum = 0;
      std::size_t kept = 0;
      do sum += list[kept++].weight;
      while (sum < share);
      list.resize(kept);
    } else if (stage == SamplerStage::kMinP && options.min_p > 0) {
      rank();
      std::erase_if(list, [&](const auto& candidate) { return candidate.weight < options.min_p; });
    }
  }

  /// After rank(), which returned `total`.
  TokenId draw(double u, double total) const {
    const double threshold = u * total;
    double sum = 0;
    std::size_t rank = 0;
    while ((sum += list[rank].weight) <= threshold) ++rank;
    return list[rank].id;
  }
};

TEST(SamplerExactness, EqualsTheSortedDefinitionToTheLastBit) {
  std::mt19937 random(8);
  const std::vector<std::string> chains = {
      "temperature",       "top_p;min_p;temperature", "temperature;top_k;top_p",
      "top_k;min_p;top_p", "min_p;temperature;top_p", "top_p;top_k"};
  for (int trial = 0; trial < 96; ++trial) {
    const std::size_t size = std::vector<std::size_t>{7, 2047, 2048, 20000}[trial % 4];
    const float spread = std::vector<float>{0.01f, 1, 3, 30}[trial / 4 % 4];  // 30: most weights are 0
    std::vector<float> logits = random_logits(random, size, spread, trial % 3 == 0);
    for (std::size_t id = 0; trial % 5 == 0 && id < size; id += 3) logits[id] = -kInfinity;
    if (trial % 16 == 0) std::fill(logits.begin(), logits.end(), trial % 32 == 0 ? -kInfinity : 2.5f);
    SamplerOptions options = plain();
    options.stages = *parse_sampler_stages(chains[static_cast<std::size_t>(trial) % chains.size()]);
    options.temperature = trial % 2 == 0 ? 0.7f : 1.3f;
    options.top_k = trial % 7 == 0 ? 3000 : 50;
    options.top_p = std::vector<float>{0, 0.3f, 0.95f, 0.999f}[trial / 3 % 4];
    options.min_p = trial % 2 == 0 ? 0.05f : 1e-6f;
    options.seed = static_cast<std::uint64_t>(trial);

    Plain expected;
    for (std::size_t id = 0; id < size; ++id)
      expected.list.push_back({static_cast<TokenId>(id), logits[id], 0.0f});
    for (const SamplerStage stage : options.stages) expected.filter(stage, options);
    const double total = expected.rank();
    const Candidates kept = candidates(options, logits);
    ASSERT_EQ(kept.size(), expected.list.size()) << trial;
    for (std::size_t rank = 0; rank < kept.size(); ++rank) {
      ASSERT_EQ(kept[rank].id, expected.list[rank].id) << trial << " " << rank;
      ASSERT_EQ(std::bit_cast<std::uint32_t>(kept[rank].weight),
                std::bit_cast<std::uint32_t>(expected.list[rank].weight));
    }
    Sampler sampler = make(options, size);
    for (std::int64_t position = 0; position < 20; ++position) {
      const double u = uniform_draw(options.seed, static_cast<std::uint64_t>(position), 0);
      ASSERT_EQ(sampler.sample(logits, {}, position), expected.draw(u, total)) << trial << " " << position;
    }
  }
}

}  // namespace
}  // namespace eider
