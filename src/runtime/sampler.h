// Sampler: logits to a token id. A chain of stages in a stated order; every draw is a function of (seed,
// position, choice) alone (docs/NUMERICS.md, Sampling). Formulas and defaults: docs/SAMPLING.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/token_id.h"

namespace eider {

enum class SamplerStage : std::uint8_t {
  kPenalties,
  kLogitBias,
  kTemperature,
  kTopK,
  kTypical,
  kTopP,
  kMinP
};

struct SamplerOptions {
  float temperature = 0.8f;     ///< 0: argmax, lowest id on ties, whatever the filters say
  std::int64_t top_k = 40;      ///< 0: off; beyond the vocabulary: clamped
  float top_p = 0.95f;          ///< 1: off
  float min_p = 0.05f;          ///< 0: off
  float typical_p = 1.0f;       ///< 1: off
  float repeat_penalty = 1.0f;  ///< 1: off
  float frequency_penalty = 0.0f;
  float presence_penalty = 0.0f;
  std::int64_t penalty_last_n = 64;     ///< tokens the penalties look back on; -1: all, 0: off
  std::map<TokenId, float> logit_bias;  ///< added to logits; minus infinity bans the token
  std::uint64_t seed = 0;
  std::uint32_t choice = 0;          ///< index of this answer among n
  std::vector<SamplerStage> stages;  ///< empty: the default order; a stage left out is off
};

/// "penalties;logit_bias;top_k" and the like, names joined by ';' or ','; errors list the known names.
Result<std::vector<SamplerStage>> parse_sampler_stages(std::string_view text);
/// "penalties;logit_bias;top_k;typical;top_p;min_p;temperature"
std::string default_sampler_stages();

class Sampler {
 public:
  /// Refuses values outside their ranges, naming the flag.
  static Result<Sampler> create(const SamplerOptions& options, std::int64_t vocab_size);

  /// A token that may still be drawn, and its weight exp(logit - max).
  struct Candidate {
    TokenId id;
    float logit;
    float weight;
  };

  /// The token at index `position` of the sequence whose earlier tokens are `history`. Logits are finite:
  /// [vocab_size]. `allowed`: only tokens i whose bit i % 64 of allowed[i / 64] is set can come, as if there
  /// were no others; at least one; empty: all. Allocates nothing.
  TokenId sample(std::span<const float> logits, std::span<const TokenId> history, std::int64_t position,
                 std::span<const std::uint64_t> allowed = {});
  /// What sample() would draw from, in rank order (weight descending, id ascending); a token's probability is
  /// its weight over the sum of all. At least one; exactly one at temperature 0. Valid until the next call.
  std::span<const Candidate> candidates(std::span<const float> logits, std::span<const TokenId> history);

 private:
  Sampler(const SamplerOptions& options, std::int64_t vocab_size);

  void prepare(std::span<const float> logits, std::span<const TokenId> history,
               std::span<const std::uint64_t> allowed);
  std::size_t best_wanted() const;
  void collect(std::span<const float> logits, std::span<const std::uint64_t> allowed);
  void apply(SamplerStage stage, std::span<const TokenId> history);
  void apply_penalties(std::span<const TokenId> history);
  void apply_logit_bias();
  void apply_temperature();
  void keep_best(std::int64_t count);
  void keep_typical();
  void keep_top_p();
  void keep_min_p();
  void weigh();
  double rank_weights();
  double rank_candidates();
  std::size_t first_rank_of(float weight) const;
  TokenId token_at(std::size_t rank) const;

  SamplerOptions options_;
  std::int64_t vocab_size_;
  std::vector<Candidate> candidates_;   // room for vocab_size, reused
  std::vector<Candidate> scratch_;      // the same
  std::vector<float> weights_;          // of the candidates, in their order or by rank; the same room
  std::vector<float> weights_scratch_;  // the same
  std::vector<float> bias_;             // [vocab_size]; empty without logit_bias
  std::vector<std::int32_t> counts_;    // [vocab_size], all zero between calls; empty without penalties
};

}  // namespace eider
