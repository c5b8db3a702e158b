#include "serving/pacer.h"

#include <gtest/gtest.h>

#include <random>

namespace eider::serving {
namespace {

constexpr std::size_t kOperations = 40;

// What a machine takes: a step of answers grows with them and is slower after prompts; an operation of a
// prompt has a part that does not depend on its size and one that grows with how much stands before it.
struct Costs {
  double noise() { return std::uniform_real_distribution<double>(0.98, 1.02)(random); }
  static double usual(std::int64_t answers) { return 0.005 + 0.0005 * static_cast<double>(answers); }
  double step(std::int64_t answers, double after_prompts) {
    return (usual(answers) + 0.3 * std::min(usual(answers), after_prompts)) * noise();
  }
  double operation(std::size_t operation, std::int64_t tokens, std::int64_t position) {
    const double attention = operation % 4 == 0 ? 4e-9 * static_cast<double>(position) : 0;
    return (0.00005 + static_cast<double>(tokens) * (0.00001 + attention)) * noise();
  }
  std::mt19937 random{1};
};

// What one step of prompts of the pacer's size took: its parts, each behind a step of answers. `spent`: by
// the part before such a step.
struct PromptStep {
  std::int64_t turns = 0;
  double longest_gap = 0;
};
PromptStep run_prompts(Pacer& pacer, Costs& costs, std::int64_t answers, std::int64_t position,
                       double& spent) {
  PromptStep run;
  const std::int64_t tokens = pacer.prompt_tokens();
  for (std::size_t next = 0; next < kOperations; ++run.turns) {
    const double step = costs.step(answers, spent);
    pacer.record_step(answers, spent, step);
    run.longest_gap = std::max(run.longest_gap, spent + step);
    spent = 0;
    do {
      const double seconds = costs.operation(next, tokens, position);
      pacer.record_operation(next, tokens, seconds);
      spent += seconds;
      ++next;
    } while (next < kOperations &&
             spent + pacer.operation_seconds(next, tokens) <= pacer.seconds_for_prompts(answers));
  }
  pacer.end_prompts(answers);
  return run;
}

TEST(Pacer, AnswersNeverWaitLongerThanTheGap) {
  for (const double gap : {2.0, 3.0, 8.0}) {
    for (const std::int64_t answers : {1, 3, 8}) {
      Pacer pacer(gap, 8, 512, kOperations);
      Costs costs;
      for (int i = 0; i < 5; ++i) pacer.record_step(answers, 0, costs.step(answers, 0));
      double computing = 0, seconds = 0, spent = 0;
      for (std::int64_t position = 0; position < 20000;) {
        const std::int64_t tokens = pacer.prompt_tokens();
        ASSERT_GE(tokens, 1);
        ASSERT_LE(tokens, 512);
        const PromptStep run = run_prompts(pacer, costs, answers, position, spent);
        ASSERT_LE(run.longest_gap, gap * Costs::usual(answers))
            << "gap " << gap << ", answers " << answers << ", tokens " << tokens << " at " << position;
        for (std::size_t op = 0; op < kOperations; ++op) computing += costs.operation(op, tokens, position);
        seconds += static_cast<double>(run.turns) * gap * Costs::usual(answers);
        position += tokens;
      }
      // Nor is much of the time that there is left unused: a gap of 3 leaves 3 - 1.3 of 3.
      if (gap >= 3) {
        EXPECT_GE(computing, 0.6 * seconds * (gap - 1.3) / gap) << "gap " << gap;
      }
    }
  }
}

TEST(Pacer, StepsThatBecomeSlowDoNotStopPrompts) {
  Pacer pacer(3, 8, 512, kOperations);
  pacer.record_step(1, 0, 0.01);
  for (int i = 0; i < 100; ++i) pacer.record_step(1, 0.01, 0.1);
  EXPECT_GE(pacer.seconds_for_prompts(1), 0.002);
  // Where prompts are not what makes them slow, such steps are the usual ones.
  for (int i = 0; i < 100; ++i) pacer.record_step(1, 0, 0.1);
  EXPECT_NEAR(pacer.seconds_for_prompts(1), 0.16, 0.02);
}

TEST(Pacer, AnInterruptedStepSaysLittle) {
  Pacer pacer(3, 8, 512, kOperations);
  for (int i = 0; i < 20; ++i) pacer.record_step(1, 0, 0.01);
  const double before = pacer.seconds_for_prompts(1);
  pacer.record_step(1, 0, 5.0);
  EXPECT_LE(pacer.seconds_for_prompts(1), 1.25 * before);
}

TEST(Pacer, PromptsShrinkToOneTokenAtLeast) {
  Pacer pacer(1.01, 8, 512, kOperations);
  pacer.record_step(1, 0, 0.001);
  for (int i = 0; i < 100; ++i) {
    ASSERT_GE(pacer.prompt_tokens(), 1);
    pacer.record_operation(3, pacer.prompt_tokens(), 5.0);
    pacer.end_prompts(1);
  }
  EXPECT_EQ(pacer.prompt_tokens(), 1);
  // An operation of another size is judged by its tokens.
  EXPECT_EQ(pacer.operation_seconds(3, 4), 20.0);
  pacer.record_operation(4, 1, 3.0);
  EXPECT_EQ(pacer.operation_seconds(5, 4), 3.0);
}

}  // namespace
}  // namespace eider::serving
