#include "bench/time_limit.h"

#include <chrono>
#include <utility>

namespace eider::bench {

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

TimeLimit::TimeLimit(double seconds, Clock now) : now_(std::move(now)), end_(now_() + seconds) {}

}  // namespace eider::bench
