// The weights of a softmax over a whole vocabulary: the one part of sampling that is worth vector
// instructions.
#pragma once

#include <span>

namespace eider {

/// Replaces each logit by exp(logit - best), `best` being the highest of them: [n], in place. A logit that
/// equals `best` weighs 1, also where all are minus infinity. The same bits on every machine.
void softmax_weights(std::span<float> logits, float best);

}  // namespace eider
