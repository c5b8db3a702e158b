#include "runtime/stop_strings.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

namespace eider {
namespace {

TEST(StopStrings, HoldsBackWhatMayStillBecomeOne) {
  StopStrings stops({"</end>"});
  EXPECT_EQ(stops.push("Hello <"), "Hello ");
  EXPECT_EQ(stops.push("/e"), "");
  EXPECT_EQ(stops.push("a</"), "</ea");
  EXPECT_EQ(stops.push("end"), "");
  EXPECT_FALSE(stops.found());
  EXPECT_EQ(stops.push("> and more"), "");
  EXPECT_TRUE(stops.found());
  EXPECT_EQ(stops.push("</end>"), "");
  EXPECT_EQ(stops.finish(), "");
}

TEST(StopStrings, GivesBackWhatItHeldWhenTheAnswerEnds) {
  StopStrings stops({"END"});
  EXPECT_EQ(stops.push("the EN"), "the ");
  EXPECT_EQ(stops.finish(), "EN");
  EXPECT_FALSE(stops.found());
}

TEST(StopStrings, OverlapsWithItself) {
  StopStrings stops({"aab"});
  EXPECT_EQ(stops.push("aaa"), "a");
  EXPECT_EQ(stops.push("ab"), "a");
  EXPECT_TRUE(stops.found());
}

TEST(StopStrings, WithoutAnyEverythingPasses) {
  StopStrings stops({});
  EXPECT_EQ(stops.push("x"), "x");
  EXPECT_EQ(stops.push(""), "");
}

TEST(StopStrings, TheOneThatIsCompleteFirstCounts) {
  StopStrings stops({"abcd", "bc"});
  EXPECT_EQ(stops.push("xabcd"), "xa");
  StopStrings nested({"c", "abc"});
  EXPECT_EQ(nested.push("xabc"), "x");  // both end there; the longer began first
  EXPECT_EQ(stops.found_string(), "bc");
  EXPECT_EQ(nested.found_string(), "abc");
}

// However the text is cut, the same comes out; and it is what one letter at a time gives by the definition.
TEST(StopStrings, TheCutsDoNotMatter) {
  std::mt19937 random(4);
  const auto below = [&](std::size_t n) {
    return std::uniform_int_distribution<std::size_t>(0, n - 1)(random);
  };
  const auto word = [&](std::size_t length) {
    std::string text;
    for (std::size_t i = 0; i < length; ++i) text += static_cast<char>('a' + below(2));
    return text;
  };
  for (int trial = 0; trial < 3000; ++trial) {
    std::vector<std::string> stops;
    for (std::size_t i = below(3) + 1; i > 0; --i) stops.push_back(word(1 + below(6)));
    const std::string text = word(1 + below(30));

    std::string expected = text;
    bool found = false;
    for (std::size_t end = 1; end <= text.size() && !found; ++end) {
      std::size_t longest = 0;
      for (const std::string& stop : stops) {
        if (text.substr(0, end).ends_with(stop)) longest = std::max(longest, stop.size());
      }
      if (longest > 0) expected = text.substr(0, end - longest);
      found = longest > 0;
    }

    StopStrings filter(stops);
    std::string out;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t count = 1 + below(5);
      out += filter.push(text.substr(at, count));
      at += count;
    }
    out += filter.finish();
    ASSERT_EQ(out, expected) << text;
    ASSERT_EQ(filter.found(), found);
  }
}

}  // namespace
}  // namespace eider
