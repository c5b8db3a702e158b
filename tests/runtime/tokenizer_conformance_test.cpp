// Tokenizers from GGUF files against recorded ids: llama.cpp's vocabularies with their test texts, and the
// real models with the ids of a long text and of chat prompts.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>

#include "base/mapped_file.h"
#include "tests/support/conformance.h"
#include "tests/support/temp_dir.h"
#include "text/chat_template.h"
#include "text/json_text.h"
#include "text/tokenizer.h"
#include "weights/checkpoint.h"
#include "weights/gguf.h"
#include "weights/gguf_vocabulary.h"

namespace eider {
namespace {

using Json = nlohmann::ordered_json;
using Ids = std::vector<TokenId>;
using test::decode;
using test::kConformance;
using test::read_file;

Result<Tokenizer> load_tokenizer(const std::string& path) {
  EIDER_TRY(const MappedFile file, MappedFile::open(path));
  EIDER_TRY(const GgufFile gguf, GgufFile::parse(file.bytes()));
  EIDER_TRY(Vocabulary vocabulary, read_vocabulary(gguf));
  return Tokenizer::create(std::move(vocabulary));
}

std::vector<std::string> split(const std::string& text, const std::string& separator) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  for (std::size_t end = text.find(separator); end != std::string::npos; end = text.find(separator, begin)) {
    parts.push_back(text.substr(begin, end - begin));
    begin = end + separator.size();
  }
  parts.push_back(text.substr(begin));
  return parts;
}

Ids parse_ids(const std::string& line) {
  std::istringstream stream(line);
  Ids ids;
  for (TokenId id = 0; stream >> id;) ids.push_back(id);
  return ids;
}

class GgufVocabulary : public testing::TestWithParam<const char*> {};

TEST_P(GgufVocabulary, GivesTheRecordedIdsAndTheTextBack) {
  const std::filesystem::path base = kConformance / "gguf_vocab" / (std::string(GetParam()) + ".gguf");
  if (!std::filesystem::exists(base.string() + ".xz")) GTEST_SKIP() << base << ".xz is not there";
  const test::TempDir folder;
  const std::string path = folder.file("vocab.gguf");
  if (!test::unpack_xz(base.string() + ".xz", path))
    GTEST_SKIP() << "no xz program to unpack " << base << ".xz";

  const auto tokenizer = load_tokenizer(path);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().message();
  const auto texts = split(read_file(base.string() + ".inp"), "\n__ggml_vocab_test__\n");
  const auto lines = split(read_file(base.string() + ".out"), "\n");
  ASSERT_GT(texts.size(), 40u);
  ASSERT_GE(lines.size(), texts.size());
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const Ids ids = tokenizer->encode(texts[i], {.add_special = false, .parse_special = false});
    EXPECT_EQ(ids, parse_ids(lines[i])) << texts[i];
    EXPECT_EQ(decode(*tokenizer, ids), texts[i]);
  }
}

INSTANTIATE_TEST_SUITE_P(LlamaCpp, GgufVocabulary,
                         testing::Values("deepseek-coder", "deepseek-llm", "falcon", "gpt-2", "llama-spm",
                                         "phi-3", "refact", "starcoder"),
                         [](const auto& instance) {
                           std::string name = instance.param;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

struct RealModel {
  const char* file;
  const char* reference;
};

class RealModelText : public testing::TestWithParam<RealModel> {
 protected:
  void SetUp() override {
    const char* models = std::getenv("EIDER_MODELS");
    if (models == nullptr) GTEST_SKIP() << "EIDER_MODELS is not set to the folder of the real models";
    const std::filesystem::path model = std::filesystem::path(models) / GetParam().file;
    const std::filesystem::path reference = kConformance / "real_models" / GetParam().reference;
    for (const auto& path : {model, reference}) {
      if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is not there";
    }
    reference_ = parse_ordered_json(read_file(reference));
    auto checkpoint = Checkpoint::open(model);
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.error().message();
    auto tokenizer = Tokenizer::create((*checkpoint)->vocabulary().value());
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().message();
    tokenizer_.emplace(std::move(tokenizer).value());
  }

  Json reference_;
  std::optional<Tokenizer> tokenizer_;
};

TEST_P(RealModelText, LongTextGivesTheRecordedIds) {
  const std::string text = read_file("/usr/share/common-licenses/GPL-3");
  if (text.empty()) GTEST_SKIP() << "/usr/share/common-licenses/GPL-3 is not there";
  Ids ids = tokenizer_->encode(text);
  ASSERT_GE(ids.size(), reference_["ids"].size());
  ids.resize(reference_["ids"].size());
  EXPECT_EQ(ids, reference_["ids"].get<Ids>());
}

TEST_P(RealModelText, ChatPromptsRenderAndTokeniseAsRecorded) {
  if (!reference_.contains("chat_greedy")) GTEST_SKIP() << "no recorded conversations for this model";
  const auto chat_template = ChatTemplate::parse(tokenizer_->vocabulary().chat_template);
  ASSERT_TRUE(chat_template.ok()) << chat_template.error().message();
  for (const Json& conversation : reference_["chat_greedy"]) {
    const Json message = {{"role", "user"}, {"content", conversation["user"]}};
    const auto prompt =
        chat_template->render({{"messages", Json::array({message})}, {"add_generation_prompt", true}});
    ASSERT_TRUE(prompt.ok()) << prompt.error().message();
    EXPECT_EQ(*prompt, conversation["rendered"].get<std::string>());
    EXPECT_EQ(tokenizer_->encode(*prompt), conversation["ids"].get<Ids>());
  }
}

INSTANTIATE_TEST_SUITE_P(Models, RealModelText,
                         testing::Values(RealModel{"SmolLM2-135M-Instruct.Q4_1.gguf",
                                                   "smollm2-135m-q4_1.json"},
                                         RealModel{"gemma-3-270m-q4_k_m.gguf", "gemma3-270m-q4_k_m.json"}),
                         [](const auto& instance) { return instance.index == 0 ? "SmolLM2" : "Gemma3"; });

}  // namespace
}  // namespace eider
