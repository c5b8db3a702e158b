#include "runtime/softmax_weights.h"

#include <cstddef>

#include "ops/numerics.h"
#include "runtime/softmax_weights_tables.h"

namespace eider {
namespace runtime::baseline {
namespace {

#include "runtime/softmax_weights.inl.h"

}  // namespace
}  // namespace runtime::baseline

namespace {

runtime::SoftmaxWeights* choose_softmax_weights() {
#if defined(__x86_64__)
  if (runtime::fma_softmax_weights() != nullptr && __builtin_cpu_supports("avx2") != 0 &&
      __builtin_cpu_supports("fma") != 0)
    return runtime::fma_softmax_weights();
#endif
  return runtime::baseline::softmax_weights;
}

}  // namespace

void softmax_weights(std::span<float> logits, float best) {
  static runtime::SoftmaxWeights* const chosen = choose_softmax_weights();
  chosen(logits.data(), logits.size(), best);
}

}  // namespace eider
