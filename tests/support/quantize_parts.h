// What the encoders of quantize.h and quantize_grid.h share.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

#include "format/half.h"

namespace eider::quantize_detail {

// A scale as the decoder will see it, and its stored half.
struct HalfScale {
  explicit HalfScale(float wanted) : bits(float_to_half(wanted)), value(half_to_float(bits)) {}
  std::uint16_t bits;
  float value;
};

// round(x / step) within [low, high]; 0 where step is 0.
inline int nearest_code(float x, float step, int low, int high) {
  if (step == 0) return std::clamp(0, low, high);
  return static_cast<int>(
      std::clamp(std::nearbyint(x / step), static_cast<float>(low), static_cast<float>(high)));
}

inline float largest_magnitude(std::span<const float> x) {
  return *std::max_element(x.begin(), x.end(), [](float a, float b) { return std::abs(a) < std::abs(b); });
}

inline float root_mean_square(std::span<const float> x) {
  float sum = 0;
  for (const float value : x) sum += value * value;
  return std::sqrt(sum / static_cast<float>(x.size()));
}

// Step of three levels -1, 0, 1 for values that are nearly normal.
inline float ternary_step(std::span<const float> x) {
  return 1.2f * root_mean_square(x);
}

// The step of each of `count` sub-blocks of 256 columns, and the largest of them.
template <int count>
struct SubBlockSteps {
  template <class Step>
  SubBlockSteps(std::span<const float> x, Step&& step_of) {
    constexpr std::size_t kColumns = 256 / count;
    for (std::size_t j = 0; j < count; ++j) {
      step[j] = step_of(x.subspan(kColumns * j, kColumns));
      largest = std::max(largest, step[j]);
    }
  }
  float step[count];
  float largest = 0;
};

// Steps with which the value of largest magnitude of a sub-block becomes `code`.
template <int count>
SubBlockSteps<count> largest_as(std::span<const float> x, float code) {
  return {x, [&](std::span<const float> part) { return std::abs(largest_magnitude(part)) / code; }};
}

}  // namespace eider::quantize_detail
