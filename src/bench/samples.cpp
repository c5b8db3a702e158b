#include "bench/samples.h"

#include <algorithm>
#include <cmath>

namespace eider::bench {

double Samples::quantile(double share) const {
  if (values_.empty()) return 0;
  std::vector<double> sorted = values_;
  std::sort(sorted.begin(), sorted.end());
  const double at = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (at - std::floor(at)) * (sorted[above] - sorted[below]);
}

double seconds_of(FunctionRef<void()> work) {
  const double start = steady_seconds();
  work();
  return steady_seconds() - start;
}

Samples sample_rate(int count, double amount, FunctionRef<void()> work, const TimeLimit& limit) {
  work();
  Samples samples;
  for (int i = 0; i == 0 || (i < count && !limit.over()); ++i) samples.add(amount / seconds_of(work));
  return samples;
}

}  // namespace eider::bench
