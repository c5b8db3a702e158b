// TimeLimit: when a measurement has to be over, so that it ends when it said it would, with what it has by
// then.
#pragma once

#include <functional>

namespace eider::bench {

/// Seconds since any moment.
using Clock = std::function<double()>;
double steady_seconds();

class TimeLimit {
 public:
  TimeLimit() = default;  ///< never over
  /// Over in so many seconds.
  explicit TimeLimit(double seconds, Clock now = steady_seconds);

  bool over() const { return now_ && now_() >= end_; }

 private:
  Clock now_;
  double end_ = 0;
};

}  // namespace eider::bench
