#include "server/tool_calls.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>

namespace eider::server {
namespace {

using Kind = AnswerPart::Kind;

/// All parts of `text`, cut into pieces of `size` bytes, neighbours of one kind joined.
std::vector<AnswerPart> parse(const ToolFormat* format, const std::string& text, std::size_t size,
                              const TextParameters& text_parameters) {
  ToolCallParser parser(format, std::make_shared<const TextParameters>(text_parameters));
  std::vector<AnswerPart> joined;
  const auto add = [&](const std::vector<AnswerPart>& parts) {
    for (const AnswerPart& part : parts) {
      const bool continues = !joined.empty() && joined.back().kind == part.kind &&
                             part.kind != Kind::kToolCall && joined.back().tool_index == part.tool_index;
      if (continues)
        joined.back().text += part.text;
      else
        joined.push_back(part);
    }
  };
  for (std::size_t i = 0; i < text.size(); i += size) add(parser.push(text.substr(i, size)));
  add(parser.finish());
  return joined;
}

void expect_parts(const ToolFormat* format, const std::string& text, const std::vector<AnswerPart>& expected,
                  const TextParameters& text_parameters = {}) {
  for (const std::size_t size : {std::size_t{1}, std::size_t{2}, std::size_t{7}, text.size()}) {
    const std::vector<AnswerPart> parts = parse(format, text, size, text_parameters);
    ASSERT_EQ(parts.size(), expected.size()) << text << " in pieces of " << size;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      EXPECT_EQ(parts[i].kind, expected[i].kind) << text << " in pieces of " << size;
      EXPECT_EQ(parts[i].text, expected[i].text) << text << " in pieces of " << size;
      EXPECT_EQ(parts[i].tool_index, expected[i].tool_index) << text << " in pieces of " << size;
    }
  }
}

const ToolFormat* hermes() {
  return tool_format_of("<tool_call> arguments");
}

TEST(ToolCalls, Hermes) {
  expect_parts(hermes(), R"(Let me see.
<tool_call>
{"name": "f", "arguments": {"a": "}\"{", "b": [1, {}]}}
</tool_call>
<tool_call>
{"arguments": {"x": 1}, "name": "g"}
</tool_call>)",
               {{Kind::kText, "Let me see."},
                {Kind::kToolCall, "f", 0},
                {Kind::kToolArguments, R"({"a": "}\"{", "b": [1, {}]})", 0},
                {Kind::kToolCall, "g", 1},
                {Kind::kToolArguments, R"({"x": 1})", 1}});
}

TEST(ToolCalls, ArgumentsMayBeMissingOrText) {
  expect_parts(hermes(), R"(<tool_call>{"name": "f"}</tool_call>)",
               {{Kind::kToolCall, "f", 0}, {Kind::kToolArguments, "{}", 0}});
  expect_parts(hermes(), R"(<tool_call>{"name": "f", "arguments": "{\"a\": 1}"}</tool_call>)",
               {{Kind::kToolCall, "f", 0}, {Kind::kToolArguments, R"({"a": 1})", 0}});
}

TEST(ToolCalls, WhatIsNoCallIsText) {
  expect_parts(hermes(), "1 < 2 <tool", {{Kind::kText, "1 < 2 <tool"}});
  expect_parts(hermes(), "<tool_call>nothing</tool_call>", {{Kind::kText, "<tool_call>nothing</tool_call>"}});
  expect_parts(hermes(), R"(<tool_call>{"name": "f")", {{Kind::kText, R"(<tool_call>{"name": "f")"}});
  const std::string call = R"(<tool_call>{"name": "f", "arguments": {}}</tool_call> )";
  expect_parts(nullptr, call, {{Kind::kText, call}});
}

TEST(ToolCalls, ACutCallKeepsItsArgumentsSoFar) {
  expect_parts(hermes(), R"(<tool_call>{"name": "f", "arguments": {"a": 1)",
               {{Kind::kToolCall, "f", 0}, {Kind::kToolArguments, R"({"a": 1)", 0}});
}

TEST(ToolCalls, Mistral) {
  const std::vector<AnswerPart> expected = {{Kind::kToolCall, "f", 0},
                                            {Kind::kToolArguments, R"({"a": 1})", 0},
                                            {Kind::kToolCall, "g", 1},
                                            {Kind::kToolArguments, "{}", 1}};
  expect_parts(
      tool_format_of("[TOOL_CALLS]"),
      R"([TOOL_CALLS][{"name": "f", "arguments": {"a": 1}, "id": "123456789"}, {"name": "g", "arguments": {}}])",
      expected);
  expect_parts(tool_format_of("[TOOL_CALLS] [ARGS]"),
               R"([TOOL_CALLS]f[CALL_ID]123456789[ARGS]{"a": 1}[TOOL_CALLS]g[ARGS]{})", expected);
}

TEST(ToolCalls, DeepSeek) {
  const ToolFormat* format = tool_format_of("<｜tool▁call▁begin｜> <｜tool▁sep｜>");
  expect_parts(format,
               "Well.<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>f<｜tool▁sep｜>{\"a\": 1}<｜tool▁call▁end｜>"
               "<｜tool▁calls▁end｜>",
               {{Kind::kText, "Well."}, {Kind::kToolCall, "f", 0}, {Kind::kToolArguments, "{\"a\": 1}", 0}});
  expect_parts(format,
               "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>f\n```json\n{\"a\": 1}\n"
               "```<｜tool▁call▁end｜>\n<｜tool▁call▁begin｜>function<｜tool▁sep｜>g\n```json\n{}\n"
               "```<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
               {{Kind::kToolCall, "f", 0},
                {Kind::kToolArguments, "{\"a\": 1}", 0},
                {Kind::kToolCall, "g", 1},
                {Kind::kToolArguments, "{}", 1}});
}

TEST(ToolCalls, Llama) {
  const ToolFormat* format = tool_format_of(R"({"name": function name, "parameters": )");
  expect_parts(format, R"(<|python_tag|>{"name": "f", "parameters": {"a": 1}})",
               {{Kind::kToolCall, "f", 0}, {Kind::kToolArguments, R"({"a": 1})", 0}});
  expect_parts(format, "It is {\"name\": 1}.", {{Kind::kText, "It is {\"name\": 1}."}});
  expect_parts(format, R"({"not": "a call"})", {{Kind::kText, R"({"not": "a call"})"}});
}

// As the chat template of Qwen3-Coder writes calls.
TEST(ToolCalls, QwenCoder) {
  const ToolFormat* format = tool_format_of("<tool_call> <function=");
  const TextParameters text = {{"write_file", "content"}, {"write_file", "path"}};
  expect_parts(format, R"(I will write it.

<tool_call>
<function=write_file>
<parameter=path>
12
</parameter>
<parameter=content>
if (a < "b") {
  </param
}

</parameter>
<parameter=mode>
{"append": true, "bits": [6, 4]}
</parameter>
<parameter=force>
True
</parameter>
<parameter=owner>
nobody else
</parameter>
</function>
</tool_call>
<tool_call>
<function=list>
</function>
</tool_call>)",
               {{Kind::kText, "I will write it."},
                {Kind::kToolCall, "write_file", 0},
                {Kind::kToolArguments,
                 R"({"path": "12", "content": "if (a < \"b\") {\n  </param\n}\n", )"
                 R"("mode": {"append":true,"bits":[6,4]}, "force": true, "owner": "nobody else"})",
                 0},
                {Kind::kToolCall, "list", 1},
                {Kind::kToolArguments, "{}", 1}},
               text);
  expect_parts(format, "<tool_call> is a tag", {{Kind::kText, "<tool_call> is a tag"}});
  expect_parts(format, "<tool_call>\n<function=f>\n<parameter=a>\nhalf a va",
               {{Kind::kToolCall, "f", 0}, {Kind::kToolArguments, R"({"a": "half a va)", 0}}, {{"f", "a"}});
}

// Text is told while it streams, and not only when it is whole.
TEST(ToolCalls, TaggedTextStreams) {
  ToolCallParser parser(tool_format_of("<tool_call> <function="),
                        std::make_shared<const TextParameters>(TextParameters{{"f", "a"}}));
  parser.push("<tool_call>\n<function=f>\n<parameter=a>\n");
  EXPECT_EQ(parser.push("one\n"), (std::vector<AnswerPart>{{Kind::kToolArguments, "one", 0}}));
  EXPECT_EQ(parser.push("two"), (std::vector<AnswerPart>{{Kind::kToolArguments, "\\ntwo", 0}}));
}

// As the chat templates of GLM 4.5, 4.6 and (on one line) 4.7 write calls.
TEST(ToolCalls, Glm) {
  const ToolFormat* format = tool_format_of("<tool_call>{function-name} <arg_key>");
  expect_parts(format, R"(Well.
<tool_call>get_weather
<arg_key>city</arg_key>
<arg_value>Peking</arg_value>
<arg_key>days</arg_key>
<arg_value>3</arg_value>
</tool_call>
<tool_call>now</tool_call>)",
               {{Kind::kText, "Well."},
                {Kind::kToolCall, "get_weather", 0},
                {Kind::kToolArguments, R"({"city": "Peking", "days": 3})", 0},
                {Kind::kToolCall, "now", 1},
                {Kind::kToolArguments, "{}", 1}},
               {{"get_weather", "city"}});
  expect_parts(format,
               "<tool_call>f<arg_key>a</arg_key><arg_value>[1]</arg_value><arg_key>b</arg_key>"
               "<arg_value>x</arg_value></tool_call>",
               {{Kind::kToolCall, "f", 0}, {Kind::kToolArguments, R"({"a": [1], "b": "x"})", 0}});
}

TEST(ToolCalls, SchemasSayWhatIsText) {
  const auto tools = nlohmann::ordered_json::parse(R"([{"function": {"name": "f", "parameters": {"properties":
      {"a": {"type": "string"}, "b": {"type": "integer"}, "c": {"enum": ["1", "2"]}, "d": {"enum": [1, "2"]},
       "e": {"type": ["string", "null"]}, "f": true}}}}, {"function": {"name": "g"}}])");
  EXPECT_EQ(text_parameters_of(tools), (TextParameters{{"f", "a"}, {"f", "c"}}));
}

// As the chat template of Kimi K2 writes calls.
TEST(ToolCalls, Kimi) {
  expect_parts(
      tool_format_of("<|tool_call_begin|> <|tool_call_argument_begin|>"),
      "Sure.<|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0"
      "<|tool_call_argument_begin|>{\"city\": \"Peking\"}<|tool_call_end|><|tool_call_begin|>functions.f:1"
      "<|tool_call_argument_begin|>{}<|tool_call_end|><|tool_calls_section_end|>",
      {{Kind::kText, "Sure."},
       {Kind::kToolCall, "get_weather", 0},
       {Kind::kToolArguments, R"({"city": "Peking"})", 0},
       {Kind::kToolCall, "f", 1},
       {Kind::kToolArguments, "{}", 1}});
}

// As gpt-oss answers: its thoughts are told apart before, by AnswerParser.
TEST(ToolCalls, GptOss) {
  const ToolFormat* format = tool_format_of("<|channel|>commentary functions.");
  const std::vector<AnswerPart> call = {{Kind::kToolCall, "get_weather", 0},
                                        {Kind::kToolArguments, R"({"city": "Peking"})", 0}};
  expect_parts(format,
               "<|start|>assistant<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>"
               "{\"city\": \"Peking\"}",
               call);
  expect_parts(format,
               "<|start|>assistant to=functions.get_weather<|channel|>commentary json<|message|>"
               "{\"city\": \"Peking\"}",
               call);
  expect_parts(format,
               "<|channel|>commentary<|message|>I will "
               "look.<|end|><|start|>assistant<|channel|>final<|message|>It is 2 "
               "< 3.",
               {{Kind::kText, "I will look.It is 2 < 3."}});
  EXPECT_TRUE(format->has_mark("<|channel|>"));
  EXPECT_TRUE(format->has_mark("<|constrain|>"));
  EXPECT_FALSE(format->has_mark("<|return|>"));
}

TEST(ToolCalls, FormatsOfPublishedTemplates) {
  const std::filesystem::path folder = std::filesystem::path(EIDER_SHARED) / "conformance" / "templates";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << folder << " is absent";
  const auto format_of = [&](const char* name) {
    std::ostringstream text;
    text << std::ifstream(folder / (std::string(name) + ".jinja")).rdbuf();
    return tool_format_of(text.str());
  };
  for (const char* name : {"Qwen-Qwen3-0.6B", "Qwen-Qwen2.5-7B-Instruct", "Qwen-QwQ-32B",
                           "NousResearch-Hermes-3-Llama-3.1-8B-tool_use", "ibm-granite-granite-4.0"}) {
    ASSERT_NE(format_of(name), nullptr) << name;
    EXPECT_EQ(format_of(name)->open, "<tool_call>") << name;
  }
  for (const char* name : {"meta-llama-Llama-3.1-8B-Instruct", "meta-llama-Llama-3.2-3B-Instruct"}) {
    ASSERT_NE(format_of(name), nullptr) << name;
    EXPECT_EQ(format_of(name)->arguments_key, "parameters") << name;
  }
  EXPECT_EQ(format_of("mistralai-Mistral-Nemo-Instruct-2407")->syntax, ToolFormat::Syntax::kList);
  EXPECT_EQ(format_of("Mistral-Small-3.2-24B-Instruct-2506")->separator, "[ARGS]");
  EXPECT_EQ(format_of("deepseek-ai-DeepSeek-R1-Distill-Llama-8B")->separator, "<｜tool▁sep｜>");
  for (const char* name : {"Qwen3-Coder", "Qwen3.5-4B"})
    EXPECT_EQ(format_of(name)->tags.key_open, "<parameter=") << name;
  for (const char* name : {"GLM-4.6", "GLM-4.7-Flash"})
    EXPECT_EQ(format_of(name)->tags.key_open, "<arg_key>") << name;
  for (const char* name : {"Kimi-K2-Instruct", "Kimi-K2-Thinking"})
    EXPECT_EQ(format_of(name)->open, "<|tool_call_begin|>") << name;
  EXPECT_EQ(format_of("openai-gpt-oss-120b")->separator, "<|");
  EXPECT_EQ(format_of("google-gemma-2-2b-it"), nullptr);
}

}  // namespace
}  // namespace eider::server
