// Sampler: logits to a token id. A chain of stages in a stated order; every draw is a function of (seed, position,
// choice) alone (docs/NUMERICS.md, Sampling).
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/token_id.h"

namespace eider {

enum class SamplerStage : std::uint8_t { kPenalties, kLogitBias, kTemperature, kTopK, kTypical, kTopP, kMinP };

struct SamplerOptions {
  float temperature = 0.8f;         ///< 0: argmax, lowest id on ties
  std::int64_t top_k = 40;          ///< 0: off; beyond the vocabulary: clamped
  float top_p = 0.95f;              ///< 1: off
  float min_p = 0.05f;              ///< 0: off
  float typical_p = 1.0f;           ///< 1: off
  float repeat_penalty = 1.0f;      ///< 1: off
  float frequency_penalty = 0.0f;
  float presence_penalty = 0.0f;
  std::int64_t penalty_last_n = 64;  ///< tokens the penalties look back on; -1: all, 0: off
  std::map<TokenId, float> logit_bias;
  std::uint64_t seed = 0;
  std::uint32_t choice = 0;         ///< index of this answer among n
  std::vector<SamplerStage> stages;  ///< empty: the default order
};

/// "penalties;logit_bias;top_k;typical;top_p;min_p;temperature" and the like; errors list the known names.
Result<std::vector<SamplerStage>> parse_sampler_stages(std::string_view text);
std::string default_sampler_stages();

class Sampler {
 public:
  /// Refuses values outside their ranges, naming the flag.
  static Result<Sampler> create(const SamplerOptions& options, std::int64_t vocab_size);

  /// A token that may still be drawn, and its weight exp(l - max); in rank order.
  struct Candidate {
    TokenId id;
    float logit;
    float weight;
  };

  /// The token at index `position` of the sequence whose earlier tokens are `history`. Logits are finite. Allocates
  /// nothing.
  TokenId sample(std::span<const float> logits, std::span<const TokenId> history, std::int64_t position);
  /// The candidates that sample() would draw from (with weights that sum to what total() says), for tests and logprobs.
  std::span<const Candidate> candidates(std::span<const float> logits, std::span<const TokenId> history);

 private:
  explicit Sampler(SamplerOptions options, std::int64_t vocab_size);

  SamplerOptions options_;
  std::vector<Candidate> candidates_;  // [vocab_size], reused
  // further scratch, reused
};

}  // namespace eider
