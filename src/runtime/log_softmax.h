// LogSoftmax: logarithms of the probabilities that a row of logits gives tokens (docs/NUMERICS.md).
#pragma once

#include <span>

#include "base/token_id.h"

namespace eider {

class LogSoftmax {
 public:
  /// `logits`, [vocab_size], must outlive this object. Goes through all of them once.
  explicit LogSoftmax(std::span<const float> logits);

  /// -ln softmax(logits)[id]: weights by the engine's exp, their sum and the logarithm in double.
  double negative_log_likelihood(TokenId id) const;

 private:
  std::span<const float> logits_;
  float best_;
  double log_sum_ = 0;
};

}  // namespace eider
