#include "runtime/log_softmax.h"

#include <algorithm>

#include "base/check.h"
#include "ops/double_math.h"
#include "ops/numerics.h"

namespace eider {

LogSoftmax::LogSoftmax(std::span<const float> logits)
    : logits_(logits), best_(*std::max_element(logits.begin(), logits.end())) {
  double sum = 0;
  for (const float logit : logits) sum += numerics::exp32(logit - best_);
  log_sum_ = log64(sum);
}

double LogSoftmax::negative_log_likelihood(TokenId id) const {
  EIDER_CHECK(id >= 0 && static_cast<std::size_t>(id) < logits_.size());
  const float logit = logits_[static_cast<std::size_t>(id)];
  return log_sum_ - (static_cast<double>(logit) - static_cast<double>(best_));
}

}  // namespace eider
