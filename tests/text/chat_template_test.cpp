#include "text/chat_template.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/text/reference_time.h"
#include "text/json_text.h"

namespace eider {
namespace {

using Json = nlohmann::ordered_json;

Result<std::string> render(std::string_view source, const Json& variables = Json::object()) {
  EIDER_TRY(const ChatTemplate chat_template, ChatTemplate::parse(source));
  return chat_template.render(variables, {reference_time()});
}

std::string failure(std::string_view source, const Json& variables = Json::object()) {
  const auto result = render(source, variables);
  return result.ok() ? "rendered: " + *result : result.error().message();
}

// make_jinja_cases.py wrote what Jinja2 itself renders.
TEST(ChatTemplate, RendersAndFailsAsJinja2Does) {
  std::ifstream file(std::string(EIDER_TEST_DATA) + "/text/jinja_cases.json");
  ASSERT_TRUE(file.good());
  std::stringstream text;
  text << file.rdbuf();
  const Json data = parse_ordered_json(text.str());
  ASSERT_GT(data["cases"].size(), 100u);
  for (const Json& test_case : data["cases"]) {
    const auto source = test_case["template"].get<std::string>();
    const auto result = render(source, data["variables"]);
    if (test_case.contains("error")) {
      EXPECT_FALSE(result.ok()) << source << "\nJinja2 raises " << test_case["error"]
                                << "\nours: " << *result;
    } else if (!result.ok()) {
      ADD_FAILURE() << source << "\n" << result.error().message();
    } else {
      EXPECT_EQ(*result, test_case["text"].get<std::string>()) << source;
    }
  }
}

TEST(ChatTemplate, NamesLineColumnAndCause) {
  EXPECT_EQ(failure("a\nb {{ missing.x }}"), "chat template, line 2, column 13: 'missing' is undefined");
  EXPECT_EQ(failure("{{ raise_exception('no tools') }}"), "chat template, line 1, column 19: no tools");
  EXPECT_EQ(failure("\xC3\xA9\n\xC3\xA9 {% bogus %}"),
            "chat template, line 2, column 6: unknown tag 'bogus'");
  EXPECT_EQ(failure("{% if x %}\n"),
            "chat template, line 1, column 11: expected 'endif', found the end of the template");
  EXPECT_EQ(failure("{{ m.x }}", {{"m", Json::object()}}).substr(0, 12), "rendered: ");
}

TEST(ChatTemplate, GenerationBlocksRenderTheirBody) {
  const auto result = render("{% generation %}{% set x = 1 %}a{{ x }}\n{% endgeneration %}\nb{{ x }}");
  ASSERT_TRUE(result.ok()) << result.error().message();
  EXPECT_EQ(*result, "a1\nb");
}

TEST(ChatTemplate, KeepsKeyOrderAndTellsIntegersFromFloats) {
  const Json variables = parse_ordered_json(R"({"x": {"b": 1, "a": 1.0, "c": [true, null, 12345678901]}})");
  const auto result = render("{{ x | tojson }} {{ x }}", variables);
  ASSERT_TRUE(result.ok()) << result.error().message();
  EXPECT_EQ(*result,
            "{\"b\": 1, \"a\": 1.0, \"c\": [true, null, 12345678901]} "
            "{'b': 1, 'a': 1.0, 'c': [True, None, 12345678901]}");
}

// Templates come from strangers: each of these must end, soon and with an error.
TEST(ChatTemplate, BoundsTimeMemoryAndRecursion) {
  for (const char* source : {
           // time
           "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
           "{% set x = 'ab' * 1000000 %}{% for i in range(99999) %}{{ 'c' in x }}{% endfor %}",
           "{% set ns = namespace(x=[1]) %}{% for i in range(150) %}{% set ns.x = [ns.x, ns.x] %}{% endfor "
           "%}{{ ns.x }}",
           "{% set n = namespace(x=[1], y=[1]) %}{% for i in range(150) %}{% set n.x = [n.x, n.x] %}"
           "{% set n.y = [n.y, n.y] %}{% endfor %}{{ n.x == n.y }}",
           // memory
           "{% set ns = namespace(s='x') %}{% for i in range(40) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}",
           "{{ 'x' * 1000000000 }}",
           "{{ 'x'.ljust(1000000000) }}",
           "{% set x = 'ab' * 10000000 %}{% for i in range(1000) %}{{ x }}{% endfor %}",
           "{{ [1] * 1000000000 }}",
           "{{ 'aaaa'.replace('', 'b' * 60000000) }}",
           "{% set ns = namespace(l=[]) %}{% for i in range(99999) %}{% set ns.l = ns.l + [i] %}{% endfor %}",
           // recursion
           "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
           "{% macro m(n) %}{% if n > 0 %}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(100) }}",
           "{% set ns = namespace(x=[]) %}{% for i in range(9999) %}{% set ns.x = [ns.x] %}{% endfor %}{{ "
           "ns.x }}",
       }) {
    const auto result = render(source);
    EXPECT_FALSE(result.ok()) << source;
  }
}

TEST(ChatTemplate, WhatReachesABoundSaysWhereAndWhy) {
  const std::pair<const char*, const char*> cases[] = {
      {"{% macro m(n) %}\n{{ m(n - 1) if n }}{% endmacro %}{{ m(100) }}",
       "chat template, line 2, column 5: macros call each other more than 64 deep"},
      {"{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}",
       "chat template, line 1, column 36: macros call each other more than 64 deep"},
      {"a {{ 'x' * 1000000000 }}",
       "chat template, line 1, column 10: the template makes a string of more than 67108864 bytes"},
      {"{{ '{:1000000000}'.format(1) }}",
       "chat template, line 1, column 26: the template makes a string of more than 67108864 bytes"},
      {"{{ 9223372036854775807 + 1 }}", "chat template, line 1, column 24: an integer leaves 64 bits"},
  };
  for (const auto& [source, message] : cases) EXPECT_EQ(failure(source), message) << source;
  // Which of the inner loop's expressions takes the last step is the compiler's order of evaluation.
  const std::string endless =
      failure("\n{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}");
  EXPECT_TRUE(endless.starts_with("chat template, line 2, column ")) << endless;
  EXPECT_TRUE(endless.ends_with(": the template takes more than 20000000 steps")) << endless;
  EXPECT_EQ(
      failure("{{ x }}", {{"x", 18446744073709551615u}}),
      "chat template, line 1, column 1: the integer 18446744073709551615 in the variables leaves 64 bits");
}

TEST(ChatTemplate, BoundsTheNestingOfSourceAndVariables) {
  const auto repeat = [](std::string_view part, int count) {
    std::string result;
    for (int i = 0; i < count; ++i) result += part;
    return result;
  };
  constexpr int kDeep = 100000;
  for (const std::string& source :
       {"{{ " + repeat("(", kDeep), "{{ " + repeat("not ", kDeep) + "1 }}",
        "{{ " + repeat("-", kDeep) + "1 }}", "{{ 1" + repeat("+1", kDeep) + " }}",
        "{{ x" + repeat(".x", kDeep) + " }}", "{{ x" + repeat("|e", kDeep) + " }}",
        "{{ " + repeat("1 if 1 else ", kDeep) + "1 }}", "{{ 1" + repeat(" if 1", kDeep) + " }}",
        repeat("{% if 1 %}", kDeep), "{% set " + repeat("(", kDeep), "{{ " + repeat("[", kDeep),
        "{{ " + repeat("{1:", kDeep)}) {
    EXPECT_FALSE(render(source).ok()) << source.substr(0, 40);
  }
  Json deep = 1;
  for (int i = 0; i < 1000; ++i) deep = Json::array({std::move(deep)});
  EXPECT_NE(failure("{{ x }}", {{"x", std::move(deep)}}).find("nested"), std::string::npos);
}

TEST(ChatTemplate, RefusesVariablesThatAreNoObject) {
  EXPECT_EQ(failure("x", Json::array()), "chat template: the variables must be a JSON object");
}

}  // namespace
}  // namespace eider
