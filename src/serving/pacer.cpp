#include "serving/pacer.h"

#include <algorithm>

#include "base/check.h"

namespace eider::serving {
namespace {

// Steps differ by chance, so that only this much of the time between two usual steps is planned with.
constexpr double kUsedPart = 0.75;
// Weights of a new measurement. What a token costs goes up quickly and down slowly: too small a piece of a
// prompt costs little, too large a one is a late token for everyone.
constexpr double kUsualWeight = 0.2, kCostUpWeight = 0.7, kCostDownWeight = 0.2;

void move_towards(double& average, double value, double weight) {
  average += weight * (value - average);
}

}  // namespace

Pacer::Pacer(double gap, std::int64_t most_answers, std::int64_t most_tokens)
    : gap_(gap), most_tokens_(most_tokens), usual_(static_cast<std::size_t>(most_answers) + 1, 0.0) {
  EIDER_CHECK(gap > 1 && most_tokens > most_answers);
}

std::int64_t Pacer::prompt_tokens(std::int64_t answers) const {
  const std::int64_t most = most_tokens_ - answers;
  if (answers == 0) return most;
  const double usual = usual_[static_cast<std::size_t>(answers)];
  if (usual == 0) return 0;
  // A token of a small piece costs more than one of a large one, and the cost is known of the last size
  // alone, so the size is at most doubled.
  const std::int64_t doubled = std::min(2 * last_, most);
  const double seconds = kUsedPart * (gap_ - 1) * usual;
  if (seconds >= static_cast<double>(doubled) * token_cost_) return doubled;
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(seconds / token_cost_));
}

void Pacer::record(std::int64_t answers, std::int64_t prompt_tokens, double seconds) {
  double& usual = usual_[static_cast<std::size_t>(answers)];
  if (prompt_tokens == 0) {
    if (usual == 0) usual = seconds;
    move_towards(usual, seconds, kUsualWeight);
    last_ = 1;
    return;
  }
  if (answers == 0 || usual == 0) return;  // there is nothing to compare with
  const double cost = std::max(0.0, seconds - usual) / static_cast<double>(prompt_tokens);
  move_towards(token_cost_, cost, cost > token_cost_ ? kCostUpWeight : kCostDownWeight);
  last_ = prompt_tokens;
}

}  // namespace eider::serving
