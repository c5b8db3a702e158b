// Pacer: how much of a prompt a step may carry without making the answers that run beside it wait. It learns
// from how long steps took; the scheduler asks it before each step.
#pragma once

#include <cstdint>
#include <vector>

namespace eider::serving {

class Pacer {
 public:
  /// `gap`: most usual steps, those without a prompt, that may pass between two tokens of an answer; above 1.
  /// `most_answers` and `most_tokens`: of a step, prompts' tokens included in the latter.
  Pacer(double gap, std::int64_t most_answers, std::int64_t most_tokens);

  /// Most tokens of prompts for a step that carries `answers` running ones too; 0: none this time, so that a
  /// usual step can be measured.
  std::int64_t prompt_tokens(std::int64_t answers) const;
  /// Such a step took `seconds`, with all that follows from it.
  void record(std::int64_t answers, std::int64_t prompt_tokens, double seconds);

 private:
  double gap_;
  std::int64_t most_tokens_;
  std::vector<double> usual_;  // [answers] seconds of a step without a prompt; 0: not known
  double token_cost_ = 0;      // seconds that a prompt's token adds to a step
  std::int64_t last_ = 1;      // prompts' tokens of the last step that ran beside answers
};

}  // namespace eider::serving
