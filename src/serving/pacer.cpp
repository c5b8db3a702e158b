#include "serving/pacer.h"

#include <algorithm>

#include "base/check.h"

namespace eider::serving {
namespace {

// Steps differ by chance, so that only this much of the time between two usual steps is planned with.
constexpr double kUsedPart = 0.87;
// Of a usual step: what prompts get at least, though the answers' steps became slower, and what is too little
// to make them so.
constexpr double kLeastPart = 0.25, kFewPart = 0.1;
// Usual steps that one of answers among prompts takes, until it is known.
constexpr double kAmongFirst = 1.5;
// Weight of a new measurement of a step, and the most that it counts as, times what is known: an interrupted
// step says nothing of the next.
constexpr double kUsualWeight = 0.2, kMostTimesUsual = 2;
// The longest operation's part of the time for prompts, beyond or below which their next step is half or
// twice as large: long operations leave much of that time unused, small steps multiply slowly.
constexpr double kLongPart = 0.7, kShortPart = 0.25;
constexpr std::int64_t kFirstTokens = 32;

void average(double& known, double value) {
  if (known == 0)
    known = value;
  else
    known += kUsualWeight * (std::min(value, kMostTimesUsual * known) - known);
}

}  // namespace

Pacer::Pacer(double gap, std::int64_t most_answers, std::int64_t most_tokens, std::size_t operations)
    : gap_(gap),
      most_tokens_(most_tokens),
      prompt_tokens_(std::min(kFirstTokens, most_tokens)),
      steps_(static_cast<std::size_t>(most_answers) + 1),
      operations_(operations) {
  EIDER_CHECK(gap > 1 && most_tokens > 0);
}

void Pacer::record_step(std::int64_t answers, double prompt_seconds, double seconds) {
  Steps& steps = steps_[static_cast<std::size_t>(answers)];
  average(prompt_seconds > kFewPart * steps.usual ? steps.among_prompts : steps.usual, seconds);
  if (steps.usual == 0) steps.usual = seconds;
}

double Pacer::seconds_for_prompts(std::int64_t answers) const {
  const Steps& steps = steps_[static_cast<std::size_t>(answers)];
  const double among = steps.among_prompts == 0 ? kAmongFirst * steps.usual : steps.among_prompts;
  return std::max(kUsedPart * gap_ * steps.usual - std::max(steps.usual, among),
                  std::min(kLeastPart, gap_ - 1) * steps.usual);
}

void Pacer::record_operation(std::size_t operation, std::int64_t tokens, double seconds) {
  operations_[operation] = {seconds, tokens};
  longest_operation_ = std::max(longest_operation_, seconds);
}

double Pacer::operation_seconds(std::size_t operation, std::int64_t tokens) const {
  const auto [seconds, known_tokens] = operations_[operation];
  if (known_tokens == 0) return longest_operation_;
  if (tokens <= known_tokens) return seconds;
  return seconds * static_cast<double>(tokens) / static_cast<double>(known_tokens);
}

void Pacer::end_prompts(std::int64_t answers) {
  const double seconds = seconds_for_prompts(answers);
  if (longest_operation_ > kLongPart * seconds)
    prompt_tokens_ = std::max<std::int64_t>(1, prompt_tokens_ / 2);
  else if (longest_operation_ < kShortPart * seconds)
    prompt_tokens_ = std::min(most_tokens_, 2 * prompt_tokens_);
  longest_operation_ = 0;
}

}  // namespace eider::serving
