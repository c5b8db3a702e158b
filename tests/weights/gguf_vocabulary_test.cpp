#include "weights/gguf_vocabulary.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "base/mapped_file.h"
#include "tests/support/gguf_writer.h"

namespace eider {
namespace {

using test::GgufWriter;

Result<Vocabulary> read(const GgufWriter& writer) {
  const std::string bytes = writer.bytes();
  EIDER_TRY(const auto file, GgufFile::parse(std::as_bytes(std::span(bytes))));
  return read_vocabulary(file);
}

GgufWriter byte_level() {
  GgufWriter writer;
  writer.metadata("tokenizer.ggml.model", "gpt2").metadata("tokenizer.ggml.pre", "smollm");
  writer.metadata("tokenizer.ggml.tokens", std::vector<std::string>{"<|end|>", "a", "b", "ab"});
  return writer;
}

TEST(GgufVocabulary, ReadsEverything) {
  GgufWriter writer = byte_level();
  writer.metadata("tokenizer.ggml.token_type", std::vector<std::int32_t>{3, 1, 1, 4});
  writer.metadata("tokenizer.ggml.scores", std::vector<float>{0, -1, -2, -0.5f});
  writer.metadata("tokenizer.ggml.merges", std::vector<std::string>{"a b"});
  writer.metadata("tokenizer.ggml.bos_token_id", std::uint32_t{1}).metadata("tokenizer.ggml.eos_token_id", 0);
  writer.metadata("tokenizer.ggml.eot_token_id", std::uint32_t{2}).metadata("tokenizer.ggml.eom_token_id", 3);
  writer.metadata("tokenizer.ggml.unknown_token_id", std::uint64_t{0});
  writer.metadata("tokenizer.ggml.padding_token_id", std::uint32_t{0xffffffff});
  writer.metadata("tokenizer.ggml.add_bos_token", true).metadata("tokenizer.ggml.add_eos_token", true);
  writer.metadata("tokenizer.ggml.add_space_prefix", true).metadata("tokenizer.chat_template", "{{ x }}");
  const Result<Vocabulary> vocabulary = read(writer);
  ASSERT_TRUE(vocabulary) << vocabulary.error().message();

  EXPECT_EQ(vocabulary->model, "gpt2");
  EXPECT_EQ(vocabulary->pre_tokenizer, "smollm");
  EXPECT_EQ(vocabulary->tokens, (std::vector<std::string>{"<|end|>", "a", "b", "ab"}));
  EXPECT_EQ(vocabulary->types, (std::vector<TokenType>{TokenType::kControl, TokenType::kNormal,
                                                       TokenType::kNormal, TokenType::kUserDefined}));
  EXPECT_EQ(vocabulary->scores, (std::vector<double>{0, -1, -2, -0.5}));
  EXPECT_EQ(vocabulary->merges, (std::vector<std::string>{"a b"}));
  EXPECT_EQ(vocabulary->bos, 1);
  EXPECT_EQ(vocabulary->eos, 0);
  EXPECT_EQ(vocabulary->eot, 2);
  EXPECT_EQ(vocabulary->eom, 3);
  EXPECT_EQ(vocabulary->unknown, 0);
  EXPECT_FALSE(vocabulary->padding) << "-1 means none";
  EXPECT_TRUE(vocabulary->add_bos && vocabulary->add_eos && vocabulary->add_space_prefix);
  EXPECT_EQ(vocabulary->chat_template, "{{ x }}");
}

TEST(GgufVocabulary, WhatAFileDoesNotSayFollowsItsModel) {
  const Result<Vocabulary> bytes = read(byte_level());
  ASSERT_TRUE(bytes) << bytes.error().message();
  EXPECT_FALSE(bytes->add_bos || bytes->add_eos || bytes->add_space_prefix);
  EXPECT_TRUE(bytes->types.empty() && bytes->scores.empty() && bytes->merges.empty());

  GgufWriter sentence_piece;
  sentence_piece.metadata("tokenizer.ggml.model", "llama");
  sentence_piece.metadata("tokenizer.ggml.tokens", std::vector<std::string>{"<s>"});
  const Result<Vocabulary> pieces = read(sentence_piece);
  ASSERT_TRUE(pieces) << pieces.error().message();
  EXPECT_TRUE(pieces->add_bos && pieces->add_space_prefix);
  EXPECT_FALSE(pieces->add_eos);

  GgufWriter llama3;
  llama3.metadata("tokenizer.ggml.model", "gpt2").metadata("tokenizer.ggml.pre", "llama-bpe");
  llama3.metadata("tokenizer.ggml.tokens", std::vector<std::string>{"x"});
  EXPECT_TRUE(read(llama3)->add_bos);
}

TEST(GgufVocabulary, RefusesWhatDoesNotFitTogether) {
  EXPECT_EQ(read(GgufWriter()).error().message(),
            "metadata key tokenizer.ggml.model is missing: the file has no tokenizer");
  EXPECT_EQ(read(GgufWriter().metadata("tokenizer.ggml.model", "gpt2")).error().message(),
            "metadata key tokenizer.ggml.tokens: missing, empty or too long");
  EXPECT_EQ(read(byte_level().metadata("tokenizer.ggml.token_type", std::vector<std::int32_t>{1}))
                .error()
                .message(),
            "metadata key tokenizer.ggml.token_type: 1 entries for 4 tokens");
  EXPECT_EQ(read(byte_level().metadata("tokenizer.ggml.token_type", std::vector<std::int32_t>{1, 7, 1, 1}))
                .error()
                .message(),
            "metadata key tokenizer.ggml.token_type: token 1 has type 7; 1 to 6 are known");
  EXPECT_EQ(read(byte_level().metadata("tokenizer.ggml.scores", std::vector<float>(5))).error().message(),
            "metadata key tokenizer.ggml.scores: 5 entries for 4 tokens");
  EXPECT_EQ(read(byte_level().metadata("tokenizer.ggml.merges", "a b")).error().message(),
            "metadata key tokenizer.ggml.merges: expected an array of strings, found a string");
  EXPECT_EQ(read(byte_level().metadata("tokenizer.ggml.eos_token_id", std::uint32_t{4})).error().message(),
            "metadata key tokenizer.ggml.eos_token_id: id 4 is outside the 4 tokens");
}

TEST(GgufVocabulary, ReadsARealModel) {
  const char* models = std::getenv("EIDER_MODELS");
  if (models == nullptr) GTEST_SKIP() << "EIDER_MODELS is not set to the folder of the real models";
  const Result<MappedFile> mapped =
      MappedFile::open(std::string(models) + "/SmolLM2-135M-Instruct.Q4_1.gguf");
  ASSERT_TRUE(mapped) << mapped.error().message();
  const Result<GgufFile> file = GgufFile::parse(mapped->bytes());
  ASSERT_TRUE(file) << file.error().message();
  const Result<Vocabulary> vocabulary = read_vocabulary(*file);
  ASSERT_TRUE(vocabulary) << vocabulary.error().message();
  EXPECT_EQ(vocabulary->tokens.size(), 49152u);
  EXPECT_EQ(vocabulary->merges.size(), 48900u);
  EXPECT_EQ(vocabulary->tokens[1], "<|im_start|>");
  EXPECT_EQ(vocabulary->eos, 2);
  EXPECT_EQ(vocabulary->chat_template.substr(0, 7), "{% for ");
}

}  // namespace
}  // namespace eider
