// Pacer: how much of a prompt a step may carry without making the answers that run beside it wait. It learns
// from how long steps took; the scheduler asks it before each step.
#pragma once

#include <array>
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
  /// Pieces of prompts beside answers have one of these sizes, so that each is measured again and again.
  static constexpr std::array<std::int64_t, 18> kSizes = {1,  2,  3,  4,  6,   8,   12,  16,  24,
                                                          32, 48, 64, 96, 128, 192, 256, 384, 512};

  double gap_;
  std::int64_t most_tokens_;
  std::vector<double> usual_;                  // [answers] seconds of a step without a prompt; 0: not known
  std::array<double, kSizes.size()> extra_{};  // seconds that a piece of a size adds; 0: not known
};

}  // namespace eider::serving
