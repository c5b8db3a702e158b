#include "runtime/thinking.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <tuple>
#include <vector>

#include "tests/support/conformance.h"

namespace eider {
namespace {

using Part = ThinkingSplitter::Part;
using Parts = std::vector<Part>;

// All parts of a text that comes in pieces of `size` bytes, neighbours of one kind joined.
Parts split(const std::string& text, const ThinkingFormat* opened, std::size_t size) {
  ThinkingSplitter splitter(opened);
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
      {"<think>a</thinking>b</think>c", false, {{"<think>a</thinking>b</think>", true}, {"c", false}}},
      {"[THINK]a</think>[/THINK]b", false, {{"[THINK]a</think>[/THINK]", true}, {"b", false}}},
      {"<|channel>thought\na<channel|>b", false, {{"<|channel>thought\na<channel|>", true}, {"b", false}}},
  };
  for (const auto& [text, thinking, expected] : cases) {
    const ThinkingFormat* opened = thinking ? thought_opened_by("<think>") : nullptr;
    for (std::size_t size = 1; size <= text.size() + 1; ++size)
      EXPECT_EQ(split(text, opened, size), expected) << text << " in pieces of " << size;
  }
}

TEST(ThinkingSplitter, HoldsBackOnlyWhatCouldBecomeATag) {
  ThinkingSplitter splitter(nullptr);
  EXPECT_EQ(splitter.push("so <"), (Parts{{"so ", false}}));
  EXPECT_EQ(splitter.push("b"), (Parts{{"<b", false}}));
  EXPECT_EQ(splitter.push("<think>hm"), (Parts{{"<think>", true}, {"hm", true}}));
}

TEST(ThoughtOpenedBy, OnlyAtThePromptsVeryEnd) {
  EXPECT_NE(thought_opened_by("<|im_start|>assistant\n<think>\n"), nullptr);
  EXPECT_NE(thought_opened_by("<think>"), nullptr);
  EXPECT_EQ(thought_opened_by("<think>\n\n</think>\n\n"), nullptr);
  EXPECT_EQ(thought_opened_by("what is <think>?"), nullptr);
  EXPECT_EQ(thought_opened_by(" \n"), nullptr);
  EXPECT_EQ(thought_opened_by(""), nullptr);
}

TEST(ThoughtOpenedBy, EveryFormat) {
  for (const ThinkingFormat& format : thinking_formats())
    EXPECT_EQ(thought_opened_by("assistant" + std::string(format.open) + "\n"), &format) << format.open;
}

// The tags stand in the templates of the models that use them.
TEST(ThinkingFormats, AreThoseOfPublishedTemplates) {
  const std::filesystem::path folder = test::kConformance / "templates";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << folder << " is not here";
  const std::vector<std::tuple<const char*, const char*, const char*>> cases = {
      {"Qwen-Qwen3-0.6B", "<think>", "</think>"},
      {"unsloth-Apriel-1.5", "<thinking>", "</thinking>"},
      {"MiniMax-M3", "<mm:think>", "</mm:think>"},
      {"CohereForAI-c4ai-command-r7b-12-2024-tool_use", "<|START_THINKING|>", "<|END_THINKING|>"},
      {"google-gemma-4-31B-it", "<|channel>thought", "<channel|>"},
      {"openai-gpt-oss-120b", "<|channel|>analysis<|message|>", "<|end|>"},
      {"Apriel-1.6-15b-Thinker-fixed", "Here are my reasoning steps:", "[BEGIN FINAL RESPONSE]"},
  };
  for (const auto& [name, open, close] : cases) {
    const std::string source = test::read_file(folder / (std::string(name) + ".jinja"));
    EXPECT_NE(source.find(open), std::string::npos) << name;
    EXPECT_NE(source.find(close), std::string::npos) << name;
    const ThinkingFormat* format = thought_opened_by(open);
    ASSERT_NE(format, nullptr) << name;
    EXPECT_EQ(format->close, close) << name;
  }
}

}  // namespace
}  // namespace eider
