#include "runtime/sampler.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "base/random.h"
#include "ops/double_math.h"
#include "runtime/softmax_weights.h"

namespace eider {
namespace {

// Nearly all of a vocabulary is below the best few: portions without an early exit vectorise.
constexpr std::size_t kPortion = 32;
bool none_above(const float* logits, float limit) {
  std::uint32_t above = 0;
  for (std::size_t i = 0; i < kPortion; ++i) above |= static_cast<std::uint32_t>(logits[i] > limit);
  return above == 0;
}

// In the default order. Filters work on the model's own distribution and the temperature, last, flattens what
// is left.
constexpr std::array<std::pair<std::string_view, SamplerStage>, 7> kStages{{
    {"penalties", SamplerStage::kPenalties},
    {"logit_bias", SamplerStage::kLogitBias},
    {"top_k", SamplerStage::kTopK},
    {"typical", SamplerStage::kTypical},
    {"top_p", SamplerStage::kTopP},
    {"min_p", SamplerStage::kMinP},
    {"temperature", SamplerStage::kTemperature},
}};

// Largest finite float: what overflows to plus infinity counts as this, so that no stage can make a NaN.
// (Minus infinity is a ban and stays.)
float cap(float logit) {
  return std::min(logit, std::numeric_limits<float>::max());
}

// Function objects, which algorithms call without a pointer.
constexpr auto has_higher_logit = [](const Sampler::Candidate& a, const Sampler::Candidate& b) {
  return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
};

constexpr auto has_lower_id = [](const Sampler::Candidate& a, const Sampler::Candidate& b) {
  return a.id < b.id;
};

bool ranks_before(const Sampler::Candidate& a, const Sampler::Candidate& b) {
  return a.weight != b.weight ? a.weight > b.weight : a.id < b.id;
}
bool ranks_before(float weight_a, float weight_b) {
  return weight_a > weight_b;
}

float weight_of(float weight) {
  return weight;
}
float weight_of(const Sampler::Candidate& candidate) {
  return candidate.weight;
}

// Sorts items, which stand in the order of ids, by rank. Weights are at most about 1, so that their bits,
// which are ordered as they are, fill 30 places. A whole vocabulary is sorted ten times as fast as by
// comparisons.
template <class Item>
void sort_by_rank(std::vector<Item>& items, std::vector<Item>& scratch) {
  constexpr std::size_t kRadixSortFrom = 2048;  // below this many std::sort is as fast
  if (items.size() < kRadixSortFrom) {
    std::sort(items.begin(), items.end(), [](const Item& a, const Item& b) { return ranks_before(a, b); });
    return;
  }
  constexpr int kDigitBits = 10;
  constexpr std::uint32_t kDigits = 1u << kDigitBits;
  scratch.resize(items.size());
  for (int shift = 0; shift < 30; shift += kDigitBits) {
    const auto digit = [shift](const Item& item) {
      return kDigits - 1 - ((std::bit_cast<std::uint32_t>(weight_of(item)) >> shift) % kDigits);
    };
    std::array<std::uint32_t, kDigits + 1> begin{};  // of each digit's items in scratch
    for (const Item& item : items) ++begin[digit(item) + 1];
    std::partial_sum(begin.begin(), begin.end(), begin.begin());
    for (const Item& item : items) scratch[begin[digit(item)]++] = item;
    items.swap(scratch);
  }
}

Status check_range(const char* flag, float value, float low, float high) {
  if (value >= low && value <= high) return {};  // false for NaN
  return error("{} must be between {} and {}, not {}", flag, low, high, value);
}

bool has_penalties(const SamplerOptions& options) {
  return options.penalty_last_n != 0 &&
         (options.repeat_penalty != 1.0f || options.frequency_penalty != 0.0f ||
          options.presence_penalty != 0.0f);
}

Status check_options(const SamplerOptions& options, std::int64_t vocab_size) {
  if (options.temperature != 0)
    EIDER_TRY_STATUS(check_range("--temp (if not 0)", options.temperature, 1e-6f, 1e6f));
  if (options.top_k < 0) return error("--top-k must be 0 (off) or more, not {}", options.top_k);
  EIDER_TRY_STATUS(check_range("--top-p", options.top_p, 0, 1));
  EIDER_TRY_STATUS(check_range("--min-p", options.min_p, 0, 1));
  EIDER_TRY_STATUS(check_range("--typical", options.typical_p, 0, 1));
  EIDER_TRY_STATUS(check_range("--repeat-penalty", options.repeat_penalty, 0.001f, 1000));
  EIDER_TRY_STATUS(check_range("--frequency-penalty", options.frequency_penalty, -1000, 1000));
  EIDER_TRY_STATUS(check_range("--presence-penalty", options.presence_penalty, -1000, 1000));
  if (options.penalty_last_n < -1) {
    return error("--repeat-last-n must be -1 (all tokens), 0 (off) or more, not {}", options.penalty_last_n);
  }
  for (const auto& [id, bias] : options.logit_bias) {
    if (id < 0 || id >= vocab_size) {
      return error("--logit-bias: token id {} is outside the model's vocabulary of {}", id, vocab_size);
    }
    if (std::isnan(bias) || bias == std::numeric_limits<float>::infinity()) {
      return error("--logit-bias: the bias of token {} must be a number or -inf, not {}", id, bias);
    }
  }
  return {};
}

std::string join_stage_names(std::string_view separator) {
  std::string joined;
  for (const auto& [name, stage] : kStages) {
    if (!joined.empty()) joined += separator;
    joined += name;
  }
  return joined;
}

}  // namespace

Result<std::vector<SamplerStage>> parse_sampler_stages(std::string_view text) {
  std::vector<SamplerStage> stages;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find_first_of(";,", begin), text.size());
    const std::string_view name = text.substr(begin, end - begin);
    const auto known =
        std::find_if(kStages.begin(), kStages.end(), [&](const auto& stage) { return stage.first == name; });
    if (known == kStages.end()) {
      return error("--samplers: unknown stage \"{}\"; known are {}", name, join_stage_names(", "));
    }
    if (std::find(stages.begin(), stages.end(), known->second) != stages.end()) {
      return error("--samplers: stage \"{}\" stands there twice", name);
    }
    stages.push_back(known->second);
    begin = end + 1;
  }
  return stages;
}

std::string default_sampler_stages() {
  return join_stage_names(";");
}

Result<Sampler> Sampler::create(const SamplerOptions& options, std::int64_t vocab_size) {
  EIDER_CHECK(vocab_size > 0);
  EIDER_TRY_STATUS(check_options(options, vocab_size));
  return Sampler(options, vocab_size);
}

Sampler::Sampler(const SamplerOptions& options, std::int64_t vocab_size)
    : options_(options), vocab_size_(vocab_size) {
  if (options_.stages.empty()) {
    for (const auto& [name, stage] : kStages) options_.stages.push_back(stage);
  }
  const auto tokens = static_cast<std::size_t>(vocab_size);
  candidates_.reserve(tokens);
  scratch_.reserve(tokens);
  weights_.reserve(tokens);
  weights_scratch_.reserve(tokens);
  if (!options_.logit_bias.empty()) {
    bias_.resize(tokens, 0.0f);
    for (const auto& [id, bias] : options_.logit_bias) bias_[static_cast<std::size_t>(id)] = bias;
  }
  if (has_penalties(options_)) counts_.resize(tokens, 0);
}

TokenId Sampler::sample(std::span<const float> logits, std::span<const TokenId> history,
                        std::int64_t position, std::span<const std::uint64_t> allowed) {
  prepare(logits, history, allowed);
  const double total = rank_weights();
  const double threshold =
      uniform_draw(options_.seed, static_cast<std::uint64_t>(position), options_.choice) * total;
  double sum = 0;
  for (std::size_t rank = 0; rank < weights_.size(); ++rank) {
    sum += weights_[rank];
    if (sum > threshold) return token_at(rank);
  }
  // The draw is below 1 by at least 2^-53, so that the product rounds below the total, which the sum reaches.
  check_failed(__FILE__, __LINE__, "a draw beyond the last candidate");
}

std::span<const Sampler::Candidate> Sampler::candidates(std::span<const float> logits,
                                                        std::span<const TokenId> history) {
  prepare(logits, history, {});
  rank_candidates();
  return candidates_;
}

// Runs the stages. They keep the candidates in the order of their ids.
void Sampler::prepare(std::span<const float> logits, std::span<const TokenId> history,
                      std::span<const std::uint64_t> allowed) {
  EIDER_CHECK_EQ(static_cast<std::int64_t>(logits.size()), vocab_size_);
  EIDER_CHECK(allowed.empty() || allowed.size() * 64 >= logits.size());
  collect(logits, allowed);
  EIDER_CHECK(!candidates_.empty());
  const bool greedy = options_.temperature == 0;
  for (const SamplerStage stage : options_.stages) {
    const bool changes_logits = stage == SamplerStage::kPenalties || stage == SamplerStage::kLogitBias;
    if (changes_logits || !greedy) apply(stage, history);
  }
  if (greedy) keep_best(1);
}

// How many of the best logits as they are the first stage that does anything would keep.
std::size_t Sampler::best_wanted() const {
  if (!counts_.empty() || !bias_.empty()) return static_cast<std::size_t>(vocab_size_);
  if (options_.temperature == 0) return 1;
  for (const SamplerStage stage : options_.stages) {
    if (stage == SamplerStage::kPenalties || stage == SamplerStage::kLogitBias) continue;
    if (stage == SamplerStage::kTopK && options_.top_k > 0)
      return static_cast<std::size_t>(std::min(options_.top_k, vocab_size_));
    break;
  }
  return static_cast<std::size_t>(vocab_size_);
}

// The allowed tokens, or, where only the best will be kept anyway, those: the vocabulary is then only read,
// which takes a fifth of the time.
void Sampler::collect(std::span<const float> logits, std::span<const std::uint64_t> allowed) {
  candidates_.clear();
  const auto is_allowed = [&](std::size_t id) {
    return allowed.empty() || (allowed[id / 64] >> (id % 64) & 1) != 0;
  };
  const std::size_t wanted = best_wanted();
  std::size_t id = 0;
  for (; id < logits.size() && candidates_.size() < wanted; ++id) {
    if (is_allowed(id)) candidates_.push_back({static_cast<TokenId>(id), logits[id], 0.0f});
  }
  if (id == logits.size()) return;
  std::make_heap(candidates_.begin(), candidates_.end(), has_higher_logit);  // the worst at the front
  while (id < logits.size()) {
    const std::size_t end = std::min(id + kPortion, logits.size());
    if (end - id == kPortion && none_above(&logits[id], candidates_.front().logit)) id = end;
    for (; id < end; ++id) {
      // Of equal ones the lower id, which is there already, is the better.
      if (!(logits[id] > candidates_.front().logit) || !is_allowed(id)) continue;
      std::pop_heap(candidates_.begin(), candidates_.end(), has_higher_logit);
      candidates_.back() = {static_cast<TokenId>(id), logits[id], 0.0f};
      std::push_heap(candidates_.begin(), candidates_.end(), has_higher_logit);
    }
  }
  std::sort(candidates_.begin(), candidates_.end(), has_lower_id);
}

void Sampler::apply(SamplerStage stage, std::span<const TokenId> history) {
  switch (stage) {
    case SamplerStage::kPenalties:
      return apply_penalties(history);
    case SamplerStage::kLogitBias:
      return apply_logit_bias();
    case SamplerStage::kTemperature:
      return apply_temperature();
    case SamplerStage::kTopK:
      if (options_.top_k > 0) keep_best(options_.top_k);
      return;
    case SamplerStage::kTypical:
      return keep_typical();
    case SamplerStage::kTopP:
      return keep_top_p();
    case SamplerStage::kMinP:
      return keep_min_p();
  }
}

void Sampler::apply_penalties(std::span<const TokenId> history) {
  if (counts_.empty()) return;
  if (options_.penalty_last_n > 0 && static_cast<std::int64_t>(history.size()) > options_.penalty_last_n) {
    history = history.last(static_cast<std::size_t>(options_.penalty_last_n));
  }
  for (const TokenId id : history) {
    EIDER_CHECK(id >= 0 && id < vocab_size_);
    ++counts_[static_cast<std::size_t>(id)];
  }
  for (Candidate& candidate : candidates_) {
    const std::int32_t count = counts_[static_cast<std::size_t>(candidate.id)];
    if (count == 0) continue;
    const float logit = candidate.logit;
    const float repeated = cap(logit < 0 ? logit * options_.repeat_penalty : logit / options_.repeat_penalty);
    candidate.logit =
        cap(repeated - (static_cast<float>(count) * options_.frequency_penalty + options_.presence_penalty));
  }
  for (const TokenId id : history) counts_[static_cast<std::size_t>(id)] = 0;
}

void Sampler::apply_logit_bias() {
  if (bias_.empty()) return;
  for (Candidate& candidate : candidates_) {
    candidate.logit = cap(candidate.logit + bias_[static_cast<std::size_t>(candidate.id)]);
  }
}

void Sampler::apply_temperature() {
  for (Candidate& candidate : candidates_) candidate.logit = cap(candidate.logit / options_.temperature);
}

// Exactly the `count` highest logits, lowest id first on ties. A partial sort passes over the vocabulary once
// when count is small.
void Sampler::keep_best(std::int64_t count) {
  if (count >= static_cast<std::int64_t>(candidates_.size())) return;
  const auto end = candidates_.begin() + count;
  std::partial_sort(candidates_.begin(), end, candidates_.end(), has_higher_logit);
  candidates_.erase(end, candidates_.end());
  std::sort(candidates_.begin(), candidates_.end(), has_lower_id);
}

// Locally typical sampling (Meister et al. 2022): the tokens whose surprise is closest to the entropy.
void Sampler::keep_typical() {
  if (options_.typical_p >= 1) return;
  const double total = rank_candidates();
  const double log_total = log64(total);
  const float best = candidates_.front().logit;
  const auto surprise = [&](const Candidate& candidate) {
    return candidate.logit == best
               ? log_total
               : log_total - (static_cast<double>(candidate.logit) - static_cast<double>(best));
  };
  double entropy = 0;
  for (const Candidate& candidate : candidates_) {
    if (candidate.weight > 0) entropy += candidate.weight / total * surprise(candidate);
  }
  const auto is_more_typical = [&](const Candidate& a, const Candidate& b) {
    const double distance_a = std::fabs(surprise(a) - entropy);
    const double distance_b = std::fabs(surprise(b) - entropy);
    return distance_a != distance_b ? distance_a < distance_b : ranks_before(a, b);
  };
  std::sort(candidates_.begin(), candidates_.end(), is_more_typical);

  const double share = static_cast<double>(options_.typical_p) * total;
  double sum = 0;
  std::size_t kept = 0;
  while (kept < candidates_.size() && (kept == 0 || sum < share)) sum += candidates_[kept++].weight;
  candidates_.resize(kept);
  std::sort(candidates_.begin(), candidates_.end(), has_lower_id);
}

// The shortest head of the ranks whose weights sum to at least the share; at least one candidate.
void Sampler::keep_top_p() {
  if (options_.top_p >= 1) return;
  const double share = static_cast<double>(options_.top_p) * rank_weights();
  double sum = weights_.front();
  std::size_t last = 0;
  while (last + 1 < weights_.size() && sum < share) sum += weights_[++last];
  const float lowest = weights_[last];
  std::size_t ties = last - first_rank_of(lowest) + 1;  // of the lowest weight, those with the lowest ids
  std::erase_if(candidates_, [&](const Candidate& candidate) {
    if (candidate.weight != lowest) return candidate.weight < lowest;
    if (ties == 0) return true;
    --ties;
    return false;
  });
}

void Sampler::keep_min_p() {
  if (options_.min_p <= 0) return;
  weigh();  // the best weight is 1, so that min_p of it is min_p
  std::erase_if(candidates_,
                [this](const Candidate& candidate) { return candidate.weight < options_.min_p; });
}

// Gives each candidate its weight, and weights_ the same in the candidates' order.
void Sampler::weigh() {
  weights_.resize(candidates_.size());
  float best = candidates_.front().logit;
  for (std::size_t i = 0; i < candidates_.size(); ++i) {
    weights_[i] = candidates_[i].logit;
    best = std::max(best, weights_[i]);
  }
  softmax_weights(weights_, best);
  for (std::size_t i = 0; i < candidates_.size(); ++i) candidates_[i].weight = weights_[i];
}

// Weighs and sorts the weights alone, a third of the bytes of the candidates; returns their sum in rank
// order.
double Sampler::rank_weights() {
  weigh();
  sort_by_rank(weights_, weights_scratch_);
  return std::accumulate(weights_.begin(), weights_.end(), 0.0);
}

// Weighs and sorts the candidates, which then are no more in the order of ids; returns the same sum.
double Sampler::rank_candidates() {
  weigh();
  sort_by_rank(candidates_, scratch_);
  double total = 0;
  for (const Candidate& candidate : candidates_) total += candidate.weight;
  return total;
}

// The first of the ranks that have this weight, after rank_weights().
std::size_t Sampler::first_rank_of(float weight) const {
  const auto first = std::lower_bound(weights_.begin(), weights_.end(), weight, std::greater<>());
  return static_cast<std::size_t>(first - weights_.begin());
}

// Of the candidates with the weight that stands at `rank`, ids ascending, the one whose turn it is.
TokenId Sampler::token_at(std::size_t rank) const {
  std::size_t before = rank - first_rank_of(weights_[rank]);
  for (const Candidate& candidate : candidates_) {
    if (candidate.weight == weights_[rank] && before-- == 0) return candidate.id;
  }
  check_failed(__FILE__, __LINE__, "a weight that no candidate has");
}

}  // namespace eider
