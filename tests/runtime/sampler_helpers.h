// What tests of the sampler share.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <utility>
#include <vector>

#include "runtime/sampler.h"

namespace eider {

using Candidates = std::vector<Sampler::Candidate>;

inline constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// Options with every stage off.
inline SamplerOptions plain() {
  SamplerOptions options;
  options.temperature = 1;
  options.top_k = 0;
  options.top_p = 1;
  options.min_p = 0;
  return options;
}

inline Sampler make(const SamplerOptions& options, std::size_t vocab_size) {
  auto sampler = Sampler::create(options, static_cast<std::int64_t>(vocab_size));
  EXPECT_TRUE(sampler.ok()) << (sampler.ok() ? "" : sampler.error().message());
  return std::move(*sampler);
}

/// What a new sampler would draw from.
inline Candidates candidates(const SamplerOptions& options, const std::vector<float>& logits,
                             const std::vector<TokenId>& history = {}) {
  Sampler sampler = make(options, logits.size());
  const auto kept = sampler.candidates(logits, history);
  return {kept.begin(), kept.end()};
}

/// Normally distributed; `with_ties`: in steps of a half.
inline std::vector<float> random_logits(std::mt19937& random, std::size_t count, float spread,
                                        bool with_ties) {
  std::normal_distribution<float> normal(0, spread);
  std::vector<float> logits(count);
  for (float& logit : logits) {
    logit = normal(random);
    if (with_ties) logit = std::round(2 * logit) / 2;
  }
  return logits;
}

}  // namespace eider
