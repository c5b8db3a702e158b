// softmax_weights for x86-64 with AVX2 and FMA: src/CMakeLists.txt gives this file the flags.
#include <cstddef>
#include <cstdint>

#include "base/float_bits.h"
#include "base/inline.h"
#include "runtime/softmax_weights_tables.h"

namespace eider::runtime {

#if defined(__AVX2__) && defined(__FMA__)
namespace fma {
namespace {

namespace numerics {
#include "ops/numerics.inl.h"
}  // namespace numerics
#include "runtime/softmax_weights.inl.h"

}  // namespace
}  // namespace fma

SoftmaxWeights* fma_softmax_weights() {
  return fma::softmax_weights;
}
#else
SoftmaxWeights* fma_softmax_weights() {
  return nullptr;
}
#endif

}  // namespace eider::runtime
