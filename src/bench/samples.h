// Samples: repeated measurements of one quantity, told as a median and a spread.
#pragma once

#include <vector>

#include "base/function_ref.h"
#include "bench/time_limit.h"

namespace eider::bench {

/// A sample repeats what is measured for about so long.
inline constexpr double kSampleSeconds = 5e-3;

class Samples {
 public:
  Samples() = default;
  explicit Samples(std::vector<double> values) : values_(std::move(values)) {}

  void add(double value) { values_.push_back(value); }
  const std::vector<double>& values() const { return values_; }

  /// 0 without samples.
  double median() const { return quantile(0.5); }
  /// Half the distance between the quartiles: the middle half of all samples lies within about this of the
  /// median.
  double spread() const { return (quantile(0.75) - quantile(0.25)) / 2; }

 private:
  double quantile(double share) const;

  std::vector<double> values_;
};

/// Seconds that `work` takes, once.
double seconds_of(FunctionRef<void()> work);

/// `amount` / seconds of each of `count` runs of `work`, after one that is not counted; of fewer, but at
/// least one, where `limit` is over before.
Samples sample_rate(int count, double amount, FunctionRef<void()> work, const TimeLimit& limit = {});

}  // namespace eider::bench
