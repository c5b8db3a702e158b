// Published chat templates over conversations, against what Jinja2 renders (templates/vectors.json).
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/text/reference_time.h"
#include "text/chat_template.h"
#include "text/json_text.h"

namespace eider {
namespace {

using Json = nlohmann::ordered_json;

const std::string kFolder = std::string(EIDER_SHARED) + "/conformance/templates/";

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream content;
  content << file.rdbuf();
  return content.str();
}

// Where the reference raises, ours is an error; `syntax_error` marks tags that plain Jinja2 does not know and
// we do.
void check(const std::string& what, const Result<std::string>& rendered, const Json& expected) {
  if (expected.contains("error")) {
    EXPECT_FALSE(rendered.ok()) << what << ": the reference raises " << expected["error"];
  } else if (expected.contains("text")) {
    ASSERT_TRUE(rendered.ok()) << what << ": " << rendered.error().message();
    EXPECT_EQ(*rendered, expected["text"].get<std::string>()) << what;
  }
}

TEST(ChatTemplateConformance, PublishedTemplatesRenderAsJinja2Does) {
  if (!std::filesystem::exists(kFolder + "vectors.json"))
    GTEST_SKIP() << kFolder << "vectors.json is not there";
  const Json vectors = parse_ordered_json(read_file(kFolder + "vectors.json"));
  int compared = 0;
  for (const auto& [name, cases] : vectors["expected"].items()) {
    const auto chat_template = ChatTemplate::parse(read_file(kFolder + name));
    ASSERT_TRUE(chat_template.ok()) << name << ": " << chat_template.error().message();
    for (const auto& [conversation, expected] : cases.items()) {
      Json variables = vectors["variables"];
      for (const auto& [key, value] : vectors["cases"][conversation].items()) variables[key] = value;
      check(name + ", " + conversation, chat_template->render(variables, {reference_time()}), expected);
      ++compared;
    }
  }
  EXPECT_GE(compared, 800);
}

}  // namespace
}  // namespace eider
