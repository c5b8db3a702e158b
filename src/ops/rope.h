// Rotary frequencies from a model's configuration, by our own double-precision functions (docs/NUMERICS.md),
// so that every machine gets the same bits.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace eider {

/// Angle of pair i at position p: p * inv_freq[i]; cos and sin are multiplied by `magnitude`.
struct RopeFrequencies {
  std::vector<double> inv_freq;  // [rotary_dim / 2]
  double magnitude = 1;
};

/// The functions below take configurations that the model has checked: rotary_dim even and positive, theta
/// above 1, factors positive, high_freq_factor above low_freq_factor.

/// f_i = exp(-(2i / rotary_dim) * log(theta))
RopeFrequencies rope_default(std::int64_t rotary_dim, double theta);
/// f_i / factor
RopeFrequencies rope_linear(std::int64_t rotary_dim, double theta, double factor);
/// f_i / divisors[i], [rotary_dim / 2] of them; GGUF stores llama3's scaling like this.
RopeFrequencies rope_divided(std::int64_t rotary_dim, double theta, const std::vector<float>& divisors);
/// llama3 scaling (Llama 3.1 and later) as fp32 divisors, [rotary_dim / 2]: long waves are divided by factor,
/// short ones are left alone, those between are interpolated.
std::vector<float> llama3_divisors(std::int64_t rotary_dim, double theta, double factor,
                                   double low_freq_factor, double high_freq_factor,
                                   double original_max_position_embeddings);

struct YarnParameters {
  double factor = 1;
  double original_max_position_embeddings = 0;
  double beta_fast = 32;
  double beta_slow = 1;
  double magnitude = 0;  ///< 0: yarn_magnitude(factor)
};
/// YaRN (Peng et al. 2023), as transformers computes it with truncation of the correction range.
RopeFrequencies rope_yarn(std::int64_t rotary_dim, double theta, const YarnParameters& yarn);
/// 0.1 * mscale * ln(factor) + 1, and 1 where factor <= 1.
double yarn_magnitude(double factor, double mscale = 1);

/// One row of a RopeTableOp: {cos_0 .. cos_{n-1}, sin_0 .. sin_{n-1}} of position * inv_freq[i], times
/// magnitude. Angles up to 2^30 (double_math.h).
void fill_rope_row(std::span<const double> inv_freq, double magnitude, std::int64_t position, float* row);

}  // namespace eider
