// A/B: two settings or programs in turn on the same work, compared pair by pair, because a shared machine's
// speed moves more from minute to minute than most changes do.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "bench/median_interval.h"
#include "bench/progress.h"
#include "bench/side_output.h"
#include "bench/time_limit.h"

namespace eider::bench {

/// Runs a side once, each time afresh, and gives its figures: the same tests in the same order each time.
/// Fails where the limit is over before.
using SideRun = std::function<Result<std::vector<Figure>>(const TimeLimit&)>;

/// Neighbouring runs of both sides, and the read roof (GB/s) before, between and after them.
struct AbPair {
  double roof_before = 0, roof_between = 0, roof_after = 0;
  std::vector<Figure> a, b;

  /// By which share of the smallest reading the roof moved.
  double roof_change() const;
  /// Whether it moved so far that the pair tells nothing of the sides.
  bool dropped() const { return roof_change() > 0.1; }
};

/// One test of all pairs that were not dropped.
struct AbTest {
  std::string model, test;          ///< empty where the sides do not tell
  double a_tok_s = 0, b_tok_s = 0;  ///< medians
  std::vector<double> ratios;       ///< B / A of each pair
  MedianInterval ratio;             ///< of these
  /// Whether all runs of both sides, in dropped pairs too, gave the same answer; absent where one does not
  /// tell.
  std::optional<bool> same_answer;

  /// Whether there are pairs enough (6) for an interval at 95 %.
  bool enough() const { return ratio.coverage >= 0.95; }
  /// Whether the sides' speeds differ, as far as these pairs can tell.
  bool differs() const { return enough() && !ratio.contains(1); }
};

struct AbReport {
  std::vector<AbPair> pairs;  ///< all of them
  std::vector<AbTest> tests;
  bool out_of_time = false;  ///< whether there was no time for all pairs that were asked for

  int dropped() const;
};

/// How pairs are run, and who is told of it.
struct AbOptions {
  int pairs = 10;                     ///< to be kept
  std::function<double()> read_roof;  ///< GB/s
  Progress progress;                  ///< called after each side, with what is kept
  /// Called after the first pair: in how many seconds all are done at most, from the start.
  std::function<void(double seconds)> tell_time;
  Clock now = steady_seconds;
};

/// Runs pairs until `options.pairs` of them are kept, but not more than twice as many, nor longer than
/// twice as many take that are like the first one (or 2 seconds); what is not finished then does not count. A
/// begins the first of them, B the second, and so on, so that what drifts evenly favours neither. Fails where
/// a side does, or where the sides' tests are not the same.
Result<AbReport> measure_pairs(const SideRun& a, const SideRun& b, const AbOptions& options);

}  // namespace eider::bench
