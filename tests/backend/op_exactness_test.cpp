// Every operation on every instruction set that this machine has, against the reference by memcmp: random
// cases of each operation, and as many more as there is time for (docs/TESTING.md, fuzzing).
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <random>

#include "tests/support/op_cases.h"

namespace eider::test {
namespace {

/// Draws the case of `seed` (of `operation`; empty: of any) and runs it everywhere.
testing::AssertionResult check_case(std::uint64_t seed, const std::string& operation) {
  OpCaseMaker maker(seed);
  const OpCase op = maker.make(operation);
  const auto rows = static_cast<std::int64_t>(op.places.positions.size());
  const ValueBits expected = run_plan(op.plan, op.places, {.threads = 1}, op.kv_type);
  std::vector<std::string> backends = other_backends(op.plan);
  backends.emplace_back("reference");  // in another manner
  for (const std::string& backend : backends) {
    const RunManner manner = maker.manner(rows, backend);
    auto result = same_values(op.plan, expected, run_plan(op.plan, op.places, manner, op.kv_type));
    if (!result)
      return result << "; " << backend << ", " << manner.threads << " threads, " << manner.steps.size()
                    << " steps; " << op.what << "; seed " << seed;
  }
  return testing::AssertionSuccess();
}

/// The number in an environment variable; 0 where it is not set.
std::uint64_t number_of(const char* variable) {
  const char* value = std::getenv(variable);
  return value == nullptr ? 0 : std::strtoull(value, nullptr, 10);
}

class OpExactness : public testing::TestWithParam<const char*> {};

TEST_P(OpExactness, EveryInstructionSetGivesTheReferencesBits) {
  constexpr std::uint64_t kCases = 12;
  for (std::uint64_t seed = 0; seed < kCases; ++seed) ASSERT_TRUE(check_case(seed, GetParam()));
}

INSTANTIATE_TEST_SUITE_P(Operations, OpExactness, testing::ValuesIn(OpCaseMaker::kOperations),
                         [](const auto& operation) { return std::string(operation.param); });

// One fresh case, or as many as EIDER_FUZZ_SECONDS allow; EIDER_FUZZ_SEED runs a certain one again.
TEST(OpFuzz, DrawsUntilTimeIsUp) {
  if (const std::uint64_t seed = number_of("EIDER_FUZZ_SEED"); seed != 0) {
    EXPECT_TRUE(check_case(seed, {}));
    return;
  }
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::seconds(number_of("EIDER_FUZZ_SECONDS"));
  std::random_device device;
  std::uint64_t cases = 0;
  do {
    const std::uint64_t seed = 1 + device();
    ASSERT_TRUE(check_case(seed, {}))
        << "after " << cases << " cases; to run it again: EIDER_FUZZ_SEED=" << seed;
    ++cases;
  } while (Clock::now() < end);
  RecordProperty("cases", static_cast<int>(cases));
  if (cases > 1) std::cout << cases << " cases\n";
}

}  // namespace
}  // namespace eider::test
