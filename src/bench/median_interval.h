// MedianInterval: how far a median of a few samples can be trusted, whatever their distribution.
#pragma once

#include <vector>

namespace eider::bench {

/// The median of samples, and two of the samples between which the true median lies with probability
/// `coverage`. All 0 without samples.
struct MedianInterval {
  double median = 0;
  double low = 0, high = 0;
  double coverage = 0;

  bool contains(double value) const { return low <= value && value <= high; }
};

/// The narrowest pair of order statistics whose coverage is at least `confidence`. Where even the smallest
/// and the largest sample (fewer than 6 of them at 95 %) do not reach that, it is these, and `coverage` says
/// less.
///
/// Each sample falls on either side of the true median with probability 1/2, so the k smallest and the k
/// largest are missed with the probability of the binomial distribution's tails (the sign test turned round).
MedianInterval median_interval(std::vector<double> samples, double confidence = 0.95);

}  // namespace eider::bench
