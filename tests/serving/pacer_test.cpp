#include "serving/pacer.h"

#include <gtest/gtest.h>

#include <random>

namespace eider::serving {
namespace {

// What a step costs: a decode step grows with its answers, and a piece of a prompt has a part that does not
// depend on its size and one that grows with how much stands before it.
double step_seconds(std::int64_t answers, std::int64_t prompt_tokens, std::int64_t position) {
  double seconds = 0.005 + 0.0005 * static_cast<double>(answers);
  if (prompt_tokens > 0)
    seconds += 0.001 + static_cast<double>(prompt_tokens) * (0.0006 + 1e-7 * static_cast<double>(position));
  return seconds;
}

TEST(Pacer, AnswersNeverWaitLongerThanTheGap) {
  for (const double gap : {1.5, 3.0, 8.0}) {
    for (const std::int64_t answers : {1, 3, 8}) {
      Pacer pacer(gap, 8, 512);
      std::mt19937 random(1);
      std::uniform_real_distribution<double> noise(0.98, 1.02);
      const double usual = step_seconds(answers, 0, 0);
      for (int prompt = 0; prompt < 3; ++prompt) {
        std::int64_t steps = 0, least_steps = 0;
        for (std::int64_t position = 0; position < 4000; ++steps) {
          const std::int64_t tokens = pacer.prompt_tokens(answers);
          ASSERT_LE(tokens + answers, 512);
          const double seconds = step_seconds(answers, tokens, position) * noise(random);
          ASSERT_LE(seconds, gap * usual) << "answers " << answers << " tokens " << tokens;
          pacer.record(answers, tokens, seconds);
          position += tokens;
        }
        // Nor is much of the time that there is left unused.
        for (std::int64_t position = 0; position < 4000; ++least_steps) {
          std::int64_t tokens = 1;
          while (tokens < 512 - answers && step_seconds(answers, tokens + 1, position) <= gap * usual)
            ++tokens;
          position += tokens;
        }
        // Where a piece is a token or two, one less is a lot.
        if (gap >= 3) {
          EXPECT_LE(steps, 1.8 * static_cast<double>(least_steps) + 12) << "gap " << gap;
        }
        for (int i = 0; i < 5; ++i) pacer.record(answers, 0, usual);
      }
    }
  }
}

TEST(Pacer, WithoutAnswersAStepIsFull) {
  const Pacer pacer(3, 8, 512);
  EXPECT_EQ(pacer.prompt_tokens(0), 512);
}

TEST(Pacer, MeasuresAUsualStepFirst) {
  Pacer pacer(3, 8, 512);
  EXPECT_EQ(pacer.prompt_tokens(2), 0);
  pacer.record(2, 0, 0.01);
  EXPECT_GT(pacer.prompt_tokens(2), 0);
  EXPECT_EQ(pacer.prompt_tokens(3), 0);  // more answers take longer
}

TEST(Pacer, AlwaysGetsOn) {
  Pacer pacer(1.01, 8, 512);
  pacer.record(1, 0, 0.001);
  for (int i = 0; i < 100; ++i) {
    ASSERT_GE(pacer.prompt_tokens(1), 1);
    pacer.record(1, pacer.prompt_tokens(1), 5.0);
  }
}

}  // namespace
}  // namespace eider::serving
