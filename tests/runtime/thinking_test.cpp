#include "runtime/thinking.h"

#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <vector>

namespace eider {
namespace {

using Part = ThinkingSplitter::Part;
using Parts = std::vector<Part>;

// All parts of a text that comes in pieces of `size` bytes, neighbours of one kind joined.
Parts split(const std::string& text, bool thinking, std::size_t size) {
  ThinkingSplitter splitter(thinking);
  Parts joined;
  const auto add = [&](const Parts& parts) {
    for (const Part& part : parts) {
      EXPECT_FALSE(part.text.empty());
      if (!joined.empty() && joined.back().thinking == part.thinking)
        joined.back().text += part.text;
      else
        joined.push_back(part);
    }
  };
  for (std::size_t i = 0; i < text.size(); i += size) add(splitter.push(text.substr(i, size)));
  add(splitter.finish());
  return joined;
}

TEST(ThinkingSplitter, TellsThoughtsFromTheAnswerHoweverTheTextIsCut) {
  const std::vector<std::tuple<std::string, bool, Parts>> cases = {
      {"", false, {}},
      {"plain", false, {{"plain", false}}},
      {"<think>why</think>because", false, {{"<think>why</think>", true}, {"because", false}}},
      {"why</think>because", true, {{"why</think>", true}, {"because", false}}},
      {"a<think>b", false, {{"a", false}, {"<think>b", true}}},
      {"a < b <thin k> <th", false, {{"a < b <thin k> <th", false}}},
      {"<<think>x</</think>y", false, {{"<", false}, {"<think>x</</think>", true}, {"y", false}}},
      {"<think></think><think>", false, {{"<think></think><think>", true}}},
      {"</think>", false, {{"</think>", false}}},
      {"half</thi", true, {{"half</thi", true}}},
  };
  for (const auto& [text, thinking, expected] : cases) {
    for (std::size_t size = 1; size <= text.size() + 1; ++size)
      EXPECT_EQ(split(text, thinking, size), expected) << text << " in pieces of " << size;
  }
}

TEST(ThinkingSplitter, HoldsBackOnlyWhatCouldBecomeATag) {
  ThinkingSplitter splitter(false);
  EXPECT_EQ(splitter.push("so <"), (Parts{{"so ", false}}));
  EXPECT_EQ(splitter.push("b"), (Parts{{"<b", false}}));
  EXPECT_EQ(splitter.push("<think>hm"), (Parts{{"<think>", true}, {"hm", true}}));
}

TEST(PromptOpensThought, OnlyAtItsVeryEnd) {
  EXPECT_TRUE(prompt_opens_thought("<|im_start|>assistant\n<think>\n"));
  EXPECT_TRUE(prompt_opens_thought("<think>"));
  EXPECT_FALSE(prompt_opens_thought("<think>\n\n</think>\n\n"));
  EXPECT_FALSE(prompt_opens_thought("what is <think>?"));
  EXPECT_FALSE(prompt_opens_thought(" \n"));
}

}  // namespace
}  // namespace eider
