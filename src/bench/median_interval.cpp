#include "bench/median_interval.h"

#include <algorithm>
#include <cmath>

namespace eider::bench {
namespace {

/// The probability that at most `most` of `count` fair coins show heads.
double binomial_tail(std::size_t count, std::size_t most) {
  const auto n = static_cast<double>(count);
  double sum = 0;
  for (std::size_t i = 0; i <= most; ++i) {
    const auto k = static_cast<double>(i);
    sum += std::exp(std::lgamma(n + 1) - std::lgamma(k + 1) - std::lgamma(n - k + 1) - n * std::log(2.0));
  }
  return sum;
}

}  // namespace

MedianInterval median_interval(std::vector<double> samples, double confidence) {
  if (samples.empty()) return {};
  std::ranges::sort(samples);
  const std::size_t count = samples.size();
  const auto coverage = [&](std::size_t cut) { return std::max(0.0, 1 - 2 * binomial_tail(count, cut)); };
  std::size_t cut = 0;  // samples left out at either end
  while (2 * (cut + 1) < count && coverage(cut + 1) >= confidence) ++cut;
  return {.median = (samples[(count - 1) / 2] + samples[count / 2]) / 2,
          .low = samples[cut],
          .high = samples[count - 1 - cut],
          .coverage = coverage(cut)};
}

}  // namespace eider::bench
