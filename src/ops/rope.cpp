#include "ops/rope.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "base/check.h"
#include "ops/double_math.h"

namespace eider {
namespace {

constexpr double kTwoPi = 0x1.921fb54442d18p2;

// The pair at which `rotations` full turns fit into `positions` (a real number): where YaRN's ramp begins or
// ends.
double correction_pair(double rotations, double rotary_dim, double theta, double positions) {
  return rotary_dim * log64(positions / (rotations * kTwoPi)) / (2 * log64(theta));
}

}  // namespace

RopeFrequencies rope_default(std::int64_t rotary_dim, double theta) {
  EIDER_CHECK(rotary_dim > 0 && rotary_dim % 2 == 0);
  const double log_theta = log64(theta);
  RopeFrequencies rope;
  for (std::int64_t i = 0; i < rotary_dim; i += 2)
    rope.inv_freq.push_back(exp64(-(static_cast<double>(i) / static_cast<double>(rotary_dim)) * log_theta));
  return rope;
}

RopeFrequencies rope_linear(std::int64_t rotary_dim, double theta, double factor) {
  RopeFrequencies rope = rope_default(rotary_dim, theta);
  for (double& frequency : rope.inv_freq) frequency /= factor;
  return rope;
}

RopeFrequencies rope_divided(std::int64_t rotary_dim, double theta, const std::vector<float>& divisors) {
  RopeFrequencies rope = rope_default(rotary_dim, theta);
  EIDER_CHECK_EQ(divisors.size(), rope.inv_freq.size());
  for (std::size_t i = 0; i < divisors.size(); ++i) rope.inv_freq[i] /= static_cast<double>(divisors[i]);
  return rope;
}

std::vector<float> llama3_divisors(std::int64_t rotary_dim, double theta, double factor,
                                   double low_freq_factor, double high_freq_factor,
                                   double original_max_position_embeddings) {
  std::vector<float> divisors;
  for (const double frequency : rope_default(rotary_dim, theta).inv_freq) {
    const double turns = original_max_position_embeddings * frequency / kTwoPi;
    const double smooth =
        std::clamp((turns - low_freq_factor) / (high_freq_factor - low_freq_factor), 0.0, 1.0);
    divisors.push_back(static_cast<float>(1 / ((1 - smooth) / factor + smooth)));
  }
  return divisors;
}

double yarn_magnitude(double factor, double mscale) {
  return factor <= 1 ? 1.0 : 0.1 * mscale * log64(factor) + 1.0;
}

RopeFrequencies rope_yarn(std::int64_t rotary_dim, double theta, const YarnParameters& yarn) {
  RopeFrequencies rope = rope_default(rotary_dim, theta);
  const auto dim = static_cast<double>(rotary_dim);
  const double positions = yarn.original_max_position_embeddings;
  // Pairs up to `first` turn often enough to be kept as they are, pairs from `last` on are interpolated.
  const double first = std::max(std::floor(correction_pair(yarn.beta_fast, dim, theta, positions)), 0.0);
  double last = std::min(std::ceil(correction_pair(yarn.beta_slow, dim, theta, positions)), dim - 1);
  if (first == last) last += 0.001;
  for (std::size_t i = 0; i < rope.inv_freq.size(); ++i) {
    const double ramp = std::clamp((static_cast<double>(i) - first) / (last - first), 0.0, 1.0);
    rope.inv_freq[i] = rope.inv_freq[i] / yarn.factor * ramp + rope.inv_freq[i] * (1 - ramp);
  }
  rope.magnitude = yarn.magnitude != 0 ? yarn.magnitude : yarn_magnitude(yarn.factor);
  return rope;
}

void fill_rope_row(std::span<const double> inv_freq, double magnitude, std::int64_t position, float* row) {
  const std::size_t pairs = inv_freq.size();
  for (std::size_t i = 0; i < pairs; ++i) {
    const SinCos angle = sincos64(static_cast<double>(position) * inv_freq[i]);
    row[i] = static_cast<float>(angle.cos * magnitude);
    row[pairs + i] = static_cast<float>(angle.sin * magnitude);
  }
}

}  // namespace eider
