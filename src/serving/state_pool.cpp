#include "serving/state_pool.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace eider::serving {
namespace {

// What the folded values are divided by.
double divisor(Pooling pooling, double tokens) {
  switch (pooling) {
    case Pooling::kMean:
      return tokens;
    case Pooling::kMeanSqrtLen:
      return std::sqrt(tokens);
    case Pooling::kWeightedMean:
      return tokens * (tokens + 1) / 2;
    case Pooling::kLast:
    case Pooling::kCls:
    case Pooling::kMax:
      return 1;
  }
  check_failed(__FILE__, __LINE__, "a Pooling outside its list");
}

// Not a number stays not a number.
double larger(double a, double b) {
  return a > b || std::isnan(a) ? a : b;
}

}  // namespace

StatePool::StatePool(Pooling pooling, std::int64_t hidden_size)
    : pooling_(pooling), values_(static_cast<std::size_t>(hidden_size)) {}

void StatePool::add(std::span<const float> state) {
  EIDER_CHECK(state.size() == values_.size());
  ++tokens_;
  const auto fold = [&](auto with) { std::ranges::transform(values_, state, values_.begin(), with); };
  const auto replace = [](double, double value) { return value; };
  switch (pooling_) {
    case Pooling::kLast:
      return fold(replace);
    case Pooling::kCls:
      return tokens_ == 1 ? fold(replace) : void();
    case Pooling::kMax:
      return tokens_ == 1 ? fold(replace) : fold(larger);
    case Pooling::kMean:
    case Pooling::kMeanSqrtLen:
      return fold([](double sum, double value) { return sum + value; });
    case Pooling::kWeightedMean:
      return fold(
          [weight = static_cast<double>(tokens_)](double sum, double value) { return sum + weight * value; });
  }
}

std::vector<float> StatePool::embedding() const {
  EIDER_CHECK(tokens_ > 0);
  const double by = divisor(pooling_, static_cast<double>(tokens_));
  std::vector<float> result;
  result.reserve(values_.size());
  for (const double value : values_) result.push_back(static_cast<float>(value / by));
  return result;
}

}  // namespace eider::serving
