// Small vocabularies against the ids and texts that the tokenizers and sentencepiece packages give for them;
// make_tokenizer_cases.py wrote both.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/support/conformance.h"
#include "tests/support/gguf_writer.h"
#include "text/json_text.h"
#include "text/tokenizer.h"
#include "weights/gguf_vocabulary.h"
#include "weights/json.h"
#include "weights/tokenizer_json.h"

namespace eider {
namespace {

using Json = nlohmann::json;
using Ids = std::vector<TokenId>;

const Json& recorded() {
  static const Json data =
      read_json_file(std::string(EIDER_TEST_DATA) + "/text/tokenizer_cases.json", 64 << 20).value();
  return data;
}

Result<Tokenizer> tokenizer_of(const Json& tokenizer_json) {
  const std::string text = to_json_text(tokenizer_json);
  EIDER_TRY(Vocabulary vocabulary, parse_tokenizer_json(std::as_bytes(std::span(text))));
  return Tokenizer::create(std::move(vocabulary));
}

// A GGUF file's vocabulary with the pieces and the rules of a SentencePiece model.
Result<Tokenizer> tokenizer_of_model(const Json& model) {
  test::GgufWriter writer;
  writer.metadata("tokenizer.ggml.model", "t5").metadata("tokenizer.ggml.pre", "default");
  writer.metadata("tokenizer.ggml.tokens", model["tokens"].get<std::vector<std::string>>());
  writer.metadata("tokenizer.ggml.scores", model["scores"].get<std::vector<float>>());
  writer.metadata("tokenizer.ggml.token_type", model["types"].get<std::vector<std::int32_t>>());
  writer.metadata("tokenizer.ggml.unknown_token_id", std::uint32_t{0});
  writer.metadata("tokenizer.ggml.add_space_prefix", model["add_space_prefix"].get<bool>());
  writer.metadata("tokenizer.ggml.remove_extra_whitespaces", model["remove_extra_whitespaces"].get<bool>());
  writer.metadata("tokenizer.ggml.precompiled_charsmap",
                  model["precompiled_charsmap"].get<std::vector<std::int32_t>>());
  const std::string bytes = writer.bytes();
  EIDER_TRY(const auto file, GgufFile::parse(std::as_bytes(std::span(bytes))));
  EIDER_TRY(Vocabulary vocabulary, read_vocabulary(file));
  return Tokenizer::create(std::move(vocabulary));
}

TEST(TokenizerCases, TokenizerJsonFilesGiveTheReferencesIdsAndTexts) {
  ASSERT_GE(recorded()["tokenizer_json"].size(), 10u);
  for (const auto& [name, entry] : recorded()["tokenizer_json"].items()) {
    const auto tokenizer = tokenizer_of(entry["tokenizer"]);
    ASSERT_TRUE(tokenizer.ok()) << name << ": " << tokenizer.error().message();
    for (const Json& test_case : entry["cases"]) {
      const auto text = test_case["text"].get<std::string>();
      const Ids ids = test_case["ids"].get<Ids>();
      EXPECT_EQ(tokenizer->encode(text, {.add_special = false}), ids) << name << ": " << test_case["text"];
      // The reference writes one U+FFFD for each byte of what is no UTF-8; there is none in these texts.
      EXPECT_EQ(test::decode(*tokenizer, ids, Detokenizer::ControlTokens::kSpelled),
                test_case["decoded"].get<std::string>())
          << name << ": " << test_case["text"];
    }
  }
}

TEST(TokenizerCases, GgufFilesOfUnigramModelsGiveTheReferencesIds) {
  ASSERT_EQ(recorded()["gguf"].size(), 2u);
  for (const auto& [name, model] : recorded()["gguf"].items()) {
    const auto tokenizer = tokenizer_of_model(model);
    ASSERT_TRUE(tokenizer.ok()) << name << ": " << tokenizer.error().message();
    for (const Json& test_case : model["cases"]) {
      const auto text = test_case["text"].get<std::string>();
      EXPECT_EQ(tokenizer->encode(text, {.add_special = false, .parse_special = false}),
                test_case["ids"].get<Ids>())
          << name << ": " << test_case["text"];
    }
  }
}

}  // namespace
}  // namespace eider
