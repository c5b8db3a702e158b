#include "weights/config.h"

#include <gtest/gtest.h>

#include "tests/support/json_printer.h"
#include "weights/json.h"

namespace eider {
namespace {

using nlohmann::json;

TEST(Config, ReadsWhatIsThere) {
  const Config config({{"n", 5},
                       {"x", 0.5},
                       {"yes", true},
                       {"text", "t"},
                       {"none", nullptr},
                       {"texts", {"a", "b"}},
                       {"numbers", {1, 2}},
                       {"inner", {{"k", 1}}}},
                      "config.json");
  EXPECT_EQ(*config.integer("n"), 5);
  EXPECT_EQ(*config.number("n"), 5.0);
  EXPECT_EQ(*config.number("x"), 0.5);
  EXPECT_TRUE(*config.boolean("yes"));
  EXPECT_EQ(*config.string("text"), "t");
  EXPECT_EQ(*config.strings("texts"), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(*config.integers("numbers"), (std::vector<std::int64_t>{1, 2}));
  EXPECT_EQ(*config.object("inner")->integer("k"), 1);
  EXPECT_EQ(*config.size("n", 5), 5);
  EXPECT_TRUE(config.has("n"));
  EXPECT_FALSE(config.has("none") || config.has("absent"));
  EXPECT_EQ(*config.integer_or("none", 7), 7);
  EXPECT_EQ(*config.number_or("absent", 7.5), 7.5);
  EXPECT_TRUE(*config.boolean_or("absent", true));
  EXPECT_EQ(*config.string_or("absent", "else"), "else");
}

TEST(Config, ErrorsNameFileKeyAndValue) {
  const Config config({{"n", 5},
                       {"x", 0.5},
                       {"text", "t"},
                       {"mixed", {1, "a"}},
                       {"inner", {{"k", "v"}}},
                       {"big", 0xffffffffffffffff},
                       {"none", nullptr}},
                      "config.json");
  EXPECT_EQ(config.integer("absent").error().message(), "config.json: absent: missing");
  EXPECT_EQ(config.integer("none").error().message(), "config.json: none: missing");
  EXPECT_EQ(config.integer("x").error().message(), "config.json: x: expected an integer, found 0.5");
  EXPECT_FALSE(config.integer("big"));
  EXPECT_EQ(config.number("text").error().message(), "config.json: text: expected a number, found a string");
  EXPECT_EQ(config.boolean("n").error().message(), "config.json: n: expected true or false, found 5");
  EXPECT_EQ(config.string("inner").error().message(),
            "config.json: inner: expected a string, found an object");
  EXPECT_EQ(config.integers("mixed").error().message(),
            "config.json: mixed: expected an array of integers, found an array");
  EXPECT_EQ(config.object("n").error().message(), "config.json: n: expected an object, found 5");
  EXPECT_EQ(config.object("inner")->integer("k").error().message(),
            "config.json: inner: k: expected an integer, found a string");
  EXPECT_EQ(config.size("n", 4).error().message(), "config.json: n: 5 is outside 1 to 4");
  EXPECT_FALSE(config.integer_or("x", 1)) << "a wrong kind is an error, default or not";
  EXPECT_FALSE(config.boolean_or("n", true));
}

TEST(Json, IsStrict) {
  EXPECT_EQ(*parse_json(R"({"a": [1, {"b": null}], "c": {"b": 2}})"),
            (json{{"a", {1, {{"b", nullptr}}}}, {"c", {{"b", 2}}}}));
  EXPECT_EQ(parse_json(R"({"a": 1, "a": 1})").error().message(), "key \"a\" appears twice");
  EXPECT_EQ(parse_json(R"({"x": {"a": 1, "b": {"a": 1}, "a": 2}})").error().message(),
            "key \"a\" appears twice");
  EXPECT_TRUE(parse_json(std::string(64, '[') + std::string(64, ']')));
  EXPECT_EQ(parse_json(std::string(65, '[') + std::string(65, ']')).error().message(),
            "more than 64 levels of nesting");
  EXPECT_FALSE(parse_json(std::string(1'000'000, '[')));
  for (const char* wrong : {"", "{", "{\"a\":}", "[1,]", "NaN", "'a'", "{} x", "// c\n{}", "\"\xff\""}) {
    const auto parsed = parse_json(wrong);
    ASSERT_FALSE(parsed) << wrong;
    EXPECT_EQ(parsed.error().message().find('\n'), std::string::npos);
    EXPECT_TRUE(parsed.error().message().starts_with("parse error at line ")) << parsed.error().message();
  }
}

}  // namespace
}  // namespace eider
