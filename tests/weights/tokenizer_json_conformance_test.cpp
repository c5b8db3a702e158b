// The published tokenizer.json files against the ids and texts that the tokenizers package gives for them.
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "base/mapped_file.h"
#include "tests/support/conformance.h"
#include "tests/support/temp_dir.h"
#include "text/tokenizer.h"
#include "weights/hf_vocabulary.h"
#include "weights/json.h"

namespace eider {
namespace {

using Json = nlohmann::json;
using Ids = std::vector<TokenId>;

class PublishedTokenizer : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const std::filesystem::path folder = test::kConformance / "tokenizers" / GetParam();
    const std::filesystem::path packed = folder / "tokenizer.json.xz";
    if (!std::filesystem::exists(packed)) GTEST_SKIP() << packed << " is not there";
    if (!test::unpack_xz(packed, path_)) GTEST_SKIP() << "no xz program to unpack " << packed;
    std::filesystem::copy_file(folder / "tokenizer_config.json", folder_.file("tokenizer_config.json"));
    auto vocabulary = read_hf_vocabulary(path_, AddSpecialRule::kPostProcessor);
    ASSERT_TRUE(vocabulary.ok()) << vocabulary.error().message();
    auto tokenizer = Tokenizer::create(std::move(vocabulary).value());
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().message();
    tokenizer_.emplace(std::move(tokenizer).value());
  }

  const test::TempDir folder_;
  const std::string path_ = folder_.file("tokenizer.json");
  std::optional<Tokenizer> tokenizer_;
};

TEST_P(PublishedTokenizer, GivesTheRecordedIdsAndTexts) {
  const auto vectors = test::kConformance / "tokenizers" / "vectors" / (std::string(GetParam()) + ".json");
  const Json cases = parse_json(test::read_file(vectors)).value()["cases"];
  ASSERT_EQ(cases.size(), 381u);
  for (const Json& recorded : cases) {
    const auto text = recorded["text"].get<std::string>();
    const Ids expected = recorded["ids"].get<Ids>();
    const Ids ids = tokenizer_->encode(text, {.add_special = false});
    EXPECT_EQ(ids, expected) << text;
    EXPECT_EQ(tokenizer_->encode(text, {.add_special = true, .repeat_bos = true}),
              recorded.value("ids_with_special", expected))
        << text;
    EXPECT_EQ(test::decode(*tokenizer_, expected, Detokenizer::ControlTokens::kSpelled),
              recorded.value("decoded", text));
  }
}

TEST_P(PublishedTokenizer, TheConfigurationBesideItNamesTheSpecialTokens) {
  auto vocabulary = read_hf_vocabulary(path_, AddSpecialRule::kTokenizerConfig);
  ASSERT_TRUE(vocabulary.ok()) << vocabulary.error().message();
  const Json config = parse_json(test::read_file(folder_.file("tokenizer_config.json"))).value();
  const auto expect_token = [&](const char* key, std::optional<TokenId> id) {
    const Json named = config[key].is_object() ? config[key]["content"] : config[key];
    ASSERT_EQ(id.has_value(), named.is_string()) << key;
    if (id) {
      EXPECT_EQ(vocabulary->tokens[static_cast<std::size_t>(*id)], named.get<std::string>());
    }
  };
  expect_token("bos_token", vocabulary->bos);
  expect_token("eos_token", vocabulary->eos);
  EXPECT_EQ(vocabulary->chat_template, config.value("chat_template", ""));
  EXPECT_EQ(vocabulary->add_bos, config.value("add_bos_token", tokenizer_->vocabulary().add_bos));
}

INSTANTIATE_TEST_SUITE_P(HuggingFace, PublishedTokenizer,
                         testing::Values("qwen3", "deepseek_v3", "llama3_1", "gemma3", "llama2"),
                         [](const auto& instance) { return std::string(instance.param); });

}  // namespace
}  // namespace eider
