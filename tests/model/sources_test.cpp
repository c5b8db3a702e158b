// The same weights are the same model, for every architecture: logits of a BF16 GGUF file, of a BF16
// directory and of one in FP8 whose values BF16 holds exactly are equal by memcmp.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/exactness.h"
#include "tests/support/loaded_engine.h"
#include "tests/support/published_model.h"

namespace eider {
namespace {

using test::PublishedModel;

struct Source {
  const char* architecture;
  bool tied;
};
void PrintTo(const Source& source, std::ostream* out) {
  *out << source.architecture << (source.tied ? " tied" : "");
}

class Sources : public testing::TestWithParam<Source> {};

std::vector<float> logits_of(const std::string& path, std::string_view backend) {
  const auto loaded =
      test::load_engine(path, 2, {.context = 64, .max_batch_tokens = 32, .max_logit_rows = 32}, backend);
  Session session = loaded.engine->new_session();
  // Two chunks, and then one token at a time.
  const std::vector<TokenId> ids = test::make_prompt(52, 0);
  const std::span<const TokenId> all(ids);
  std::vector<float> logits = test::run_in_chunks(*loaded.engine, session, all.first(48), 32);
  const std::vector<float> decoded = test::run_in_chunks(*loaded.engine, session, all.subspan(48), 1);
  logits.insert(logits.end(), decoded.begin(), decoded.end());
  return logits;
}

TEST_P(Sources, GiveTheSameLogits) {
  const PublishedModel model(GetParam().architecture, GetParam().tied);
  const test::TempDir directory;
  const std::string gguf = directory.file("model.gguf");
  model.write_directory(directory);
  model.write_gguf(gguf);
  for (const std::string_view backend : {cpu_isas(detect_machine()).front(), std::string_view("reference")}) {
    const std::vector<float> from_gguf = logits_of(gguf, backend);
    const std::vector<float> from_directory = logits_of(directory.file(""), backend);
    EXPECT_GT(*std::ranges::max_element(from_gguf) - *std::ranges::min_element(from_gguf), 1.0f);
    test::expect_same_bits(from_directory, from_gguf, PublishedModel::kVocabSize, std::string(backend));
  }
}

TEST_P(Sources, GiveTheSameLogitsInFp8) {
  const PublishedModel model(GetParam().architecture, GetParam().tied, true);
  const test::TempDir as_bf16, as_fp8;
  model.write_directory(as_bf16);
  model.write_fp8_directory(as_fp8);
  const auto checkpoint = Checkpoint::open(as_fp8.file(""));
  ASSERT_TRUE(checkpoint) << checkpoint.error().message();
  EXPECT_EQ(
      std::ranges::count((*checkpoint)->tensors(), Format::kFP8_E4M3,
                         [](const auto& named) { return named.second.format; }),
      PublishedModel::kLayers *
          (GetParam().architecture == std::string_view("qwen3_moe") ? 4 + 3 * PublishedModel::kExperts : 7));

  const std::vector<float> expected = logits_of(as_bf16.file(""), "reference");
  EXPECT_GT(*std::ranges::max_element(expected) - *std::ranges::min_element(expected), 1.0f);
  std::vector<std::string> backends = test::cpu_backends(true);
  backends.emplace_back("reference");
  for (const std::string& backend : backends)
    test::expect_same_bits(logits_of(as_fp8.file(""), backend), expected, PublishedModel::kVocabSize,
                           backend);
}

INSTANTIATE_TEST_SUITE_P(Models, Sources,
                         testing::Values(Source{"llama", false}, Source{"llama", true},
                                         Source{"qwen2", false}, Source{"qwen2", true},
                                         Source{"qwen3", false}, Source{"qwen3", true},
                                         Source{"qwen3_moe", false}, Source{"qwen3_moe", true},
                                         Source{"gemma3_text", true}),
                         [](const auto& source) {
                           return std::string(source.param.architecture) + (source.param.tied ? "_tied" : "");
                         });

}  // namespace
}  // namespace eider
