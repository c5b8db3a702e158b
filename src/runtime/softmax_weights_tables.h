// The two compilations of softmax_weights.inl.h.
#pragma once

#include <cstddef>

namespace eider::runtime {

using SoftmaxWeights = void(float* values, std::size_t count, float best);

/// For x86-64 with AVX2 and FMA; null where the build is for something else.
SoftmaxWeights* fma_softmax_weights();

}  // namespace eider::runtime
