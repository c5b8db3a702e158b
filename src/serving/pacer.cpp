#include "serving/pacer.h"

#include <algorithm>
#include <limits>

#include "base/check.h"

namespace eider::serving {
namespace {

// Steps differ by chance, so that only this much of the time between two usual steps is planned with.
constexpr double kUsedPart = 0.85;
// Weights of a new measurement. What a piece costs goes up quickly and down slowly: too small a piece of a
// prompt costs little, too large a one is a late token for everyone.
constexpr double kUsualWeight = 0.2, kUpWeight = 0.7, kDownWeight = 0.3;

void average(double& known, double value, double weight) {
  known = known == 0 ? value : known + weight * (value - known);
}

}  // namespace

Pacer::Pacer(double gap, std::int64_t most_answers, std::int64_t most_tokens)
    : gap_(gap), most_tokens_(most_tokens), usual_(static_cast<std::size_t>(most_answers) + 1, 0.0) {
  EIDER_CHECK(gap > 1 && most_tokens > most_answers);
}

// The largest size that is known to fit, or must fit: a token of a larger piece costs at most what one of a
// smaller piece does.
std::int64_t Pacer::prompt_tokens(std::int64_t answers) const {
  const std::int64_t most = most_tokens_ - answers;
  if (answers == 0) return most;
  const double usual = usual_[static_cast<std::size_t>(answers)];
  if (usual == 0) return 0;
  const double limit = kUsedPart * (gap_ - 1) * usual;
  std::int64_t chosen = kSizes[0];
  double estimate = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < kSizes.size(); ++i) {
    if (i > 0) estimate *= static_cast<double>(kSizes[i]) / static_cast<double>(kSizes[i - 1]);
    if (extra_[i] > 0) estimate = std::min(estimate, extra_[i]);
    if (estimate <= limit) chosen = kSizes[i];
  }
  return std::min(chosen, most);
}

void Pacer::record(std::int64_t answers, std::int64_t prompt_tokens, double seconds) {
  double& usual = usual_[static_cast<std::size_t>(answers)];
  if (prompt_tokens == 0) {
    average(usual, seconds, kUsualWeight);
    extra_.fill(0);  // the next prompt may have more before it, where its pieces cost more
    return;
  }
  if (answers == 0 || usual == 0) return;  // there is nothing to compare with
  const auto above = std::ranges::upper_bound(kSizes, prompt_tokens);
  const auto measured = static_cast<std::size_t>(above - kSizes.begin() - 1);
  double& extra = extra_[measured];
  const double value = std::max(seconds - usual, std::numeric_limits<double>::min());
  average(extra, value, value > extra ? kUpWeight : kDownWeight);
  // What is known of smaller sizes is older, from where less stood before them.
  for (std::size_t i = 0; i < measured; ++i) {
    const double part = static_cast<double>(kSizes[i]) / static_cast<double>(kSizes[measured]);
    if (extra_[i] > 0) extra_[i] = std::max(extra_[i], part * extra);
  }
}

}  // namespace eider::serving
