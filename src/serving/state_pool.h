// StatePool: folds the states of a prompt's tokens into its embedding as the steps compute them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "weights/pooling.h"

namespace eider::serving {

class StatePool {
 public:
  StatePool(Pooling pooling, std::int64_t hidden_size);

  /// The state [hidden_size] of the next token. Sums are kept in double and grow token by token, so the bits
  /// do not depend on which steps brought the tokens. For Pooling::kLast tokens before the last may be left
  /// out.
  void add(std::span<const float> state);

  /// Of the tokens so far, at least one: [hidden_size], not normalised.
  std::vector<float> embedding() const;

 private:
  Pooling pooling_;
  std::int64_t tokens_ = 0;
  std::vector<double> values_;
};

}  // namespace eider::serving
