// Pacer: how much of the prompts' steps may run between two steps of answers, so that answers keep their
// pace. It learns from how long steps and their operations took; the batcher asks it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace eider::serving {

class Pacer {
 public:
  /// `gap`: most usual steps, those without a prompt, that may pass between two tokens of an answer; above 1.
  /// `most_answers`: of a step. `most_tokens`: of a step of prompts. `operations`: of the plan.
  Pacer(double gap, std::int64_t most_answers, std::int64_t most_tokens, std::size_t operations);

  /// A step of so many answers took `seconds`, with all that follows from it, after prompts had run for
  /// `prompt_seconds`.
  void record_step(std::int64_t answers, double prompt_seconds, double seconds);
  /// Seconds for prompts between two such steps.
  double seconds_for_prompts(std::int64_t answers) const;

  /// Tokens of the next step of prompts: as many as leave each operation a fraction of those seconds.
  std::int64_t prompt_tokens() const { return prompt_tokens_; }
  /// An operation of a prompts' step of `tokens` took `seconds`.
  void record_operation(std::size_t operation, std::int64_t tokens, double seconds);
  /// What it will take; where nothing is known, what the longest one took.
  double operation_seconds(std::size_t operation, std::int64_t tokens) const;
  /// A prompts' step has ended, beside so many answers.
  void end_prompts(std::int64_t answers);

 private:
  /// Seconds of a step of answers; 0: not known.
  struct Steps {
    double usual = 0, among_prompts = 0;  // what prompts need drives the weights out of caches
  };
  struct Operation {
    double seconds = 0;
    std::int64_t tokens = 0;  // of the step in which it took them
  };

  double gap_;
  std::int64_t most_tokens_;
  std::int64_t prompt_tokens_;
  double longest_operation_ = 0;  // seconds, of this step of prompts
  std::vector<Steps> steps_;      // by answers
  std::vector<Operation> operations_;
};

}  // namespace eider::serving
