// Rotary frequencies from a model's configuration, by our own double-precision functions (docs/NUMERICS.md), so that
// every machine gets the same bits.
#pragma once

#include <cstdint>
#include <vector>

namespace eider {

/// Angle of pair i at position p: p * inv_freq[i]; cos and sin are multiplied by `magnitude`.
struct RopeFrequencies {
  std::vector<double> inv_freq;  // [rotary_dim / 2]
  double magnitude = 1;
};

/// f_i = exp(-(2i / rotary_dim) * log(theta))
RopeFrequencies rope_default(std::int64_t rotary_dim, double theta);
/// f_i / factor
RopeFrequencies rope_linear(std::int64_t rotary_dim, double theta, double factor);
/// f_i / divisors[i]; GGUF stores llama3's scaling like this.
RopeFrequencies rope_divided(std::int64_t rotary_dim, double theta, const std::vector<float>& divisors);
/// llama3 scaling (Llama 3.1 and later) as fp32 divisors.
std::vector<float> llama3_divisors(std::int64_t rotary_dim, double theta, double factor, double low_freq_factor,
                                   double high_freq_factor, double original_max_position_embeddings);

struct YarnParameters {
  double factor = 1;
  double original_max_position_embeddings = 0;
  double beta_fast = 32;
  double beta_slow = 1;
  double magnitude = 0;  // 0: 0.1 * ln(factor) + 1
};
/// YaRN (Peng et al. 2023), as transformers computes it with truncation of the correction range.
RopeFrequencies rope_yarn(std::int64_t rotary_dim, double theta, const YarnParameters& yarn);

}  // namespace eider
