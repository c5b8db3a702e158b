#include "weights/tokenizer_json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/support/temp_dir.h"
#include "text/json_text.h"
#include "weights/hf_vocabulary.h"
#include "weights/json.h"

namespace eider {
namespace {

using Json = nlohmann::json;

Json small_tokenizer() {
  return parse_json(R"({
    "added_tokens": [{"id": 6, "content": "<s>", "special": true, "normalized": false},
                     {"id": 2, "content": "c", "lstrip": true, "normalized": false}],
    "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false},
    "decoder": {"type": "ByteLevel"},
    "post_processor": {"type": "TemplateProcessing", "special_tokens": {"<s>": {"ids": [6]}},
                       "single": [{"SpecialToken": {"id": "<s>"}}, {"Sequence": {"id": "A"}}]},
    "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "c": 2, "ab": 3, "abc": 4},
              "merges": ["a b", ["ab", "c"]]}})")
      .value();
}

Result<Vocabulary> parse(const std::string& text) {
  return parse_tokenizer_json(std::as_bytes(std::span(text)));
}

std::string failure(const Json& patch) {
  Json tokenizer = small_tokenizer();
  tokenizer.merge_patch(patch);
  const auto vocabulary = parse(to_json_text(tokenizer));
  return vocabulary.ok() ? "" : vocabulary.error().message();
}

TEST(TokenizerJson, TokensMergesAndRulesAsTheFileSays) {
  const auto vocabulary = parse(to_json_text(small_tokenizer()));
  ASSERT_TRUE(vocabulary.ok()) << vocabulary.error().message();
  EXPECT_EQ(vocabulary->model, "gpt2");
  EXPECT_EQ(vocabulary->tokens, (std::vector<std::string>{"a", "b", "c", "ab", "abc", "", "<s>"}));
  using enum TokenType;
  EXPECT_EQ(vocabulary->types,
            (std::vector<TokenType>{kNormal, kNormal, kUserDefined, kNormal, kNormal, kUnused, kControl}));
  ASSERT_EQ(vocabulary->merge_ids.size(), 2u);
  EXPECT_EQ(vocabulary->merge_ids[1].left, 3);
  EXPECT_EQ(vocabulary->merge_ids[1].right, 2);
  EXPECT_EQ(vocabulary->merge_ids[1].joined, 4);
  ASSERT_EQ(vocabulary->added_token_rules.size(), 1u);
  EXPECT_TRUE(vocabulary->added_token_rules[0].lstrip);
  EXPECT_EQ(vocabulary->bos, 6);
  EXPECT_TRUE(vocabulary->add_bos);
  EXPECT_FALSE(vocabulary->add_eos);
}

TEST(TokenizerJson, NamesWhatItCannotFollow) {
  EXPECT_EQ(parse("{").error().message().substr(0, 9), "not JSON:");
  EXPECT_EQ(parse_tokenizer_json({}).error().message(), "not JSON: it is empty");
  EXPECT_EQ(failure({{"model", nullptr}}), "model is missing");
  EXPECT_EQ(failure({{"model", {{"type", "WordPiece"}}}}),
            "model: type \"WordPiece\" is not supported; known are BPE, Unigram");
  EXPECT_EQ(failure({{"model", {{"vocab", {{"a", 1}}}}}}), "model.vocab: two tokens have id 1");
  EXPECT_EQ(failure({{"model", {{"vocab", {{"a", -1}}}}}}), "model.vocab: id -1 is not in 0..4194303");
  EXPECT_EQ(failure({{"model", {{"merges", {"a b c"}}}}}), "model.merges: merge 0 is not two pieces");
  EXPECT_EQ(failure({{"model", {{"merges", {"a c"}}}}}),
            "model.merges: merge 0 (\"a\" and \"c\") names a piece that is no token");
  EXPECT_EQ(failure({{"model", {{"end_of_word_suffix", "</w>"}}}}),
            "model.end_of_word_suffix is not supported");
  EXPECT_EQ(failure({{"added_tokens", {{{"id", 9}, {"content", "a"}}}}}),
            "added_tokens[0]: \"a\" has id 9 here and 0 in the model's vocabulary");
  EXPECT_EQ(failure({{"normalizer", {{"type", "Nmt"}}}}),
            "normalizer: type \"Nmt\" is not supported; known are NFC, NFD, NFKC, NFKD, Lowercase, Strip, "
            "StripAccents, Prepend, Replace, Precompiled");
  EXPECT_EQ(failure({{"pre_tokenizer", {{"type", "Punctuation"}}}}),
            "pre_tokenizer: type \"Punctuation\" is not supported; known are Split, Digits, WhitespaceSplit, "
            "Metaspace, ByteLevel");
  EXPECT_EQ(failure({{"pre_tokenizer", {{"type", "Metaspace"}, {"replacement", "_"}}}}),
            "pre_tokenizer.replacement: \"_\" is not supported; U+2581 is");
  EXPECT_EQ(failure({{"post_processor", {{"special_tokens", {{"<s>", {{"ids", {7}}}}}}}}}),
            "post_processor.special_tokens.<s>.ids: expected the id of one token");
}

// DeepSeek V3's directory: the tokenizers package adds no BOS, transformers does.
TEST(HfVocabulary, TheLoneFileFollowsItsPostProcessorAndTheDirectoryItsConfiguration) {
  Json tokenizer = small_tokenizer();
  tokenizer["post_processor"] = {{"type", "ByteLevel"}};
  const test::TempDir folder;
  const std::string path = folder.write("tokenizer.json", to_json_text(tokenizer));
  folder.write("tokenizer_config.json",
               R"({"add_bos_token": true, "bos_token": "<s>", "clean_up_tokenization_spaces": true})");
  const auto alone = read_hf_vocabulary(path, AddSpecialRule::kPostProcessor);
  ASSERT_TRUE(alone.ok()) << alone.error().message();
  EXPECT_FALSE(alone->add_bos || alone->clean_up_spaces);
  const auto directory = read_hf_vocabulary(path, AddSpecialRule::kTokenizerConfig);
  ASSERT_TRUE(directory.ok()) << directory.error().message();
  EXPECT_TRUE(directory->add_bos && directory->clean_up_spaces);
  EXPECT_EQ(directory->bos, 6);
}

TEST(HfVocabulary, FilesBesideItNameTokensAndTheTemplate) {
  const test::TempDir folder;
  const std::string path = folder.write("tokenizer.json", to_json_text(small_tokenizer()));
  folder.write("tokenizer_config.json", R"({"add_bos_token": false, "bos_token": {"content": "<s>"},
                                           "eos_token": "b", "pad_token": "nowhere",
                                           "chat_template": [{"name": "rag", "template": "R"},
                                                             {"name": "default", "template": "D"}]})");
  folder.write("generation_config.json", R"({"eos_token_id": [1, 6]})");
  auto vocabulary = read_hf_vocabulary(path, AddSpecialRule::kTokenizerConfig);
  ASSERT_TRUE(vocabulary.ok()) << vocabulary.error().message();
  EXPECT_FALSE(vocabulary->add_bos);
  EXPECT_EQ(vocabulary->bos, 6);
  EXPECT_EQ(vocabulary->eos, 1);
  EXPECT_FALSE(vocabulary->padding.has_value());
  EXPECT_EQ(vocabulary->more_eos, (std::vector<TokenId>{1, 6}));
  EXPECT_EQ(vocabulary->chat_template, "D");

  folder.write("chat_template.jinja", "J");
  vocabulary = read_hf_vocabulary(path, AddSpecialRule::kPostProcessor);
  ASSERT_TRUE(vocabulary.ok()) << vocabulary.error().message();
  EXPECT_TRUE(vocabulary->add_bos);
  EXPECT_EQ(vocabulary->chat_template, "J");

  folder.write("generation_config.json", R"({"eos_token_id": 7})");
  EXPECT_EQ(read_hf_vocabulary(path, AddSpecialRule::kPostProcessor).error().message(),
            folder.file("generation_config.json") + ": eos_token_id: 7 is not the id of a token");
}

TEST(HfVocabulary, OtherFilesSayWhatTheUsualOnesDoNot) {
  const test::TempDir folder;
  const std::string path = folder.write("tokenizer.json", small_tokenizer().dump());
  folder.write("tokenizer_config.json", R"({"eos_token": "b"})");
  folder.write("special_tokens_map.json", R"({"eos_token": "a", "pad_token": {"content": "c"}})");
  folder.write("chat_template.json", R"({"chat_template": "P"})");
  folder.write("config.json", R"({"text_config": {"eos_token_id": [2]}})");
  auto vocabulary = read_hf_vocabulary(path, AddSpecialRule::kTokenizerConfig);
  ASSERT_TRUE(vocabulary.ok()) << vocabulary.error().message();
  EXPECT_EQ(vocabulary->eos, 1);
  EXPECT_EQ(vocabulary->padding, 2);
  EXPECT_EQ(vocabulary->more_eos, std::vector<TokenId>{2});
  EXPECT_EQ(vocabulary->chat_template, "P");

  folder.write("config.json", R"({"eos_token_id": 5})");
  folder.write("tokenizer_config.json", R"({"chat_template": "T"})");
  vocabulary = read_hf_vocabulary(path, AddSpecialRule::kTokenizerConfig);
  ASSERT_TRUE(vocabulary.ok()) << vocabulary.error().message();
  EXPECT_EQ(vocabulary->eos, 0);
  EXPECT_EQ(vocabulary->more_eos, std::vector<TokenId>{5});
  EXPECT_EQ(vocabulary->chat_template, "T");

  folder.write("generation_config.json", R"({"eos_token_id": 1})");
  vocabulary = read_hf_vocabulary(path, AddSpecialRule::kTokenizerConfig);
  ASSERT_TRUE(vocabulary.ok()) << vocabulary.error().message();
  EXPECT_EQ(vocabulary->more_eos, std::vector<TokenId>{1});
}

}  // namespace
}  // namespace eider
