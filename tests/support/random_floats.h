// Random floats for op cases: well-behaved ones, and rows salted with what breaks careless arithmetic.
#pragma once

#include <cstdint>
#include <limits>
#include <random>
#include <vector>

namespace eider::test {

class RandomFloats {
 public:
  explicit RandomFloats(std::uint64_t seed) : engine_(seed) {}

  /// Normally distributed with standard deviation `scale`.
  std::vector<float> normal(std::int64_t count, float scale = 1) {
    std::normal_distribution<float> distribution(0, scale);
    std::vector<float> values(static_cast<std::size_t>(count));
    for (float& value : values) value = distribution(engine_);
    return values;
  }

  /// normal(), in which some rows of `width` are zero, tiny (below 2^-100), denormal or huge, or hold an
  /// infinity or NaN.
  std::vector<float> salted(std::int64_t rows, std::int64_t width) {
    std::vector<float> values = normal(rows * width);
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    for (std::int64_t row = 0; row < rows; ++row) {
      const std::int64_t begin = row * width;
      const auto scale_row = [&](float factor) {
        for (std::int64_t i = 0; i < width; ++i) values[static_cast<std::size_t>(begin + i)] *= factor;
      };
      float& one = values[static_cast<std::size_t>(begin + below(width))];
      switch (below(12)) {
        case 0:
          scale_row(0.0f);
          break;
        case 1:
          scale_row(0x1p-110f);
          break;
        case 2:
          scale_row(0x1p-140f);
          break;
        case 3:
          scale_row(0x1p60f);
          break;
        case 4:
          one = below(2) == 0 ? kInfinity : -kInfinity;
          break;
        case 5:
          one = std::numeric_limits<float>::quiet_NaN();
          break;
        case 6:
          one = 0x1p-149f;
          break;
        case 7:
          scale_row(0x1p-97f);  // what products of FP8 take, and not
          break;
        default:
          break;
      }
    }
    return values;
  }

  std::int64_t below(std::int64_t bound) {
    return std::uniform_int_distribution<std::int64_t>(0, bound - 1)(engine_);
  }

 private:
  std::mt19937_64 engine_;
};

}  // namespace eider::test
