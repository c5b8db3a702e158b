#include "weights/generation_config.h"

#include <gtest/gtest.h>

#include "tests/support/temp_dir.h"

namespace eider {
namespace {

using test::TempDir;

/// What reading the folder fails with, the folder's name taken out.
std::string read_error(const TempDir& directory) {
  const auto read = read_generation_config(directory.file(""));
  if (read) return "";
  const std::string message = read.error().message();
  const std::string prefix = directory.file("");
  EXPECT_TRUE(message.starts_with(prefix)) << message;
  return message.substr(prefix.size());
}

TEST(GenerationConfig, IsEmptyWithoutFiles) {
  const TempDir directory;
  const auto read = read_generation_config(directory.file(""));
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_FALSE(read->temperature || read->top_k || read->top_p || read->min_p || read->repetition_penalty);
  EXPECT_TRUE(read->eos_token_ids.empty());
}

// Qwen3's, and Gemma 3's, which leaves the temperature out.
TEST(GenerationConfig, ReadsPublishedFiles) {
  const TempDir directory;
  directory.write("config.json", R"({"eos_token_id": 7})");
  directory.write("generation_config.json",
                  R"({"bos_token_id": 151643, "do_sample": true, "eos_token_id": [151645, 151643],
                      "pad_token_id": 151643, "temperature": 0.6, "top_k": 20, "top_p": 0.95, "min_p": 0,
                      "repetition_penalty": 1.05, "transformers_version": "4.51.0"})");
  auto read = read_generation_config(directory.file(""));
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(read->temperature, 0.6);
  EXPECT_EQ(read->top_k, 20);
  EXPECT_EQ(read->top_p, 0.95);
  EXPECT_EQ(read->min_p, 0.0);
  EXPECT_EQ(read->repetition_penalty, 1.05);
  EXPECT_EQ(read->eos_token_ids, (std::vector<std::int64_t>{151645, 151643}));

  directory.write("generation_config.json", R"({"top_k": 64, "top_p": 0.95, "temperature": null})");
  read = read_generation_config(directory.file(""));
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_FALSE(read->temperature);
  EXPECT_EQ(read->top_k, 64);
  EXPECT_EQ(read->eos_token_ids, std::vector<std::int64_t>{7});
  EXPECT_EQ(read->eos_origin, directory.file("config.json"));
}

TEST(GenerationConfig, SaysWhatIsWrong) {
  const TempDir directory;
  const auto error_of = [&](const char* text) {
    directory.write("generation_config.json", text);
    return read_error(directory);
  };
  EXPECT_EQ(error_of("[]"), "generation_config.json: expected an object");
  EXPECT_EQ(error_of("{").substr(0, 34), "generation_config.json: parse erro");
  EXPECT_EQ(error_of(R"({"temperature": -1})"),
            "generation_config.json: temperature: -1 is outside 0 to 100");
  EXPECT_EQ(error_of(R"({"top_p": 1.5})"), "generation_config.json: top_p: 1.5 is outside 0 to 1");
  EXPECT_EQ(error_of(R"({"min_p": "low"})"),
            "generation_config.json: min_p: expected a number, found a string");
  EXPECT_EQ(error_of(R"({"repetition_penalty": 0})"),
            "generation_config.json: repetition_penalty: 0 is outside 0.01 to 100");
  EXPECT_EQ(error_of(R"({"top_k": 2.5})"), "generation_config.json: top_k: expected an integer, found 2.5");
  EXPECT_EQ(error_of(R"({"top_k": -1})"), "generation_config.json: top_k: -1 is not a number of tokens");
  EXPECT_EQ(error_of(R"({"eos_token_id": "end"})"),
            "generation_config.json: eos_token_id: expected an integer, found a string");
  EXPECT_EQ(error_of(R"({"eos_token_id": [1, "end"]})"),
            "generation_config.json: eos_token_id: expected an array of integers, found an array");
  directory.write("config.json", R"({"text_config": 1})");
  EXPECT_EQ(error_of("{}"), "config.json: text_config: expected an object, found 1");
}

}  // namespace
}  // namespace eider
