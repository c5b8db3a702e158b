// The same bits on every machine: hashes of whole models' logits, recorded on x86-64 and checked on every
// architecture, by the reference and every instruction set. A change of docs/NUMERICS.md changes them: the
// failures then print the new ones.
#include <gtest/gtest.h>
#include <xxhash.h>

#include <string>
#include <vector>

#include "tests/support/exactness.h"
#include "tests/support/loaded_engine.h"
#include "tests/support/random_model.h"
#include "tests/support/temp_dir.h"

namespace eider::test {
namespace {

/// A golden model, or a random one with its matrices in the format of that name, and XXH3 of its logits.
struct HashCase {
  const char* model;
  const char* format;
  KvType kv_type;
  std::uint64_t hash;
};
void PrintTo(const HashCase& recorded, std::ostream* out) {
  *out << recorded.model << " " << recorded.format;
}

constexpr HashCase kCases[] = {
    {"llama", "", KvType::kF16, 0x33ec0984f79e96ab},
    {"llama", "", KvType::kF32, 0x65458ba053eda0af},
    {"qwen3_moe", "", KvType::kF16, 0xb6a7ceb8a0b7f240},
    {"qwen3_moe", "", KvType::kF32, 0x2a5f8953cabef907},
    {"gemma3", "", KvType::kF16, 0x6cc177d537a25f27},
    {"gemma3", "", KvType::kF32, 0x4e280bb56782957a},
    {"random_dense", "F32", KvType::kF16, 0xdf1c709a408749a1},
    {"random_dense", "F16", KvType::kF16, 0xdd897f4453b7846f},
    {"random_dense", "BF16", KvType::kF16, 0x89eff4467855c6f8},
    {"random_dense", "Q4_0", KvType::kF16, 0x3c94925ef257a481},
    {"random_dense", "Q4_1", KvType::kF16, 0x93d0076040c4009f},
    {"random_dense", "Q5_0", KvType::kF16, 0x1da15cfb85b11db9},
    {"random_dense", "Q5_1", KvType::kF16, 0x67f3a88a788fd0d9},
    {"random_dense", "Q8_0", KvType::kF16, 0xf73721a82dce89af},
    {"random_dense", "Q4_K", KvType::kF16, 0xcbee7c54c5e3691a},
    {"random_dense", "Q5_K", KvType::kF16, 0x186dfaec5bfb8ec2},
    {"random_dense", "Q6_K", KvType::kF16, 0x3f2024323c3f9fbf},
    {"random_moe", "BF16", KvType::kF16, 0x0e07b1074bf87513},
    {"random_moe", "Q4_0", KvType::kF16, 0x4b906f1662b22609},
    {"random_moe", "Q8_0", KvType::kF16, 0x7676907b81b6636f},
    {"random_moe", "Q4_K", KvType::kF16, 0xbb306087ed499a85},
    {"random_moe", "Q6_K", KvType::kF16, 0xbb0b41c4f14fa7cc},
};

class LogitHash : public testing::TestWithParam<HashCase> {};

TEST_P(LogitHash, IsTheRecordedOne) {
  const auto& [model, format_text, kv_type, recorded] = GetParam();
  const TempDir directory;
  std::string path = golden_folder(model);
  std::int64_t tokens = 150;  // two KV blocks
  for (const Format format : {
#define EIDER_FORMAT(F) F::kFormat,
           EIDER_FORMATS(EIDER_FORMAT)
#undef EIDER_FORMAT
       })
    if (std::string_view(format_text) == format_name(format)) {
      path = directory.file("model.gguf");
      RandomModel(format, std::string_view(model) == "random_moe").write(path);
      tokens = 45;
    }
  ASSERT_FALSE(path.empty()) << "golden model " << model << " is not here";

  std::vector<std::string_view> backends = cpu_isas(detect_machine());
  backends.emplace_back("reference");
  for (const std::string_view backend : backends) {
    auto loaded = load_engine(
        path, 2, {.context = 256, .max_batch_tokens = 32, .max_logit_rows = 32, .kv_type = kv_type}, backend);
    Session session = loaded.engine->new_session();
    const std::vector<float> logits = run_in_chunks(*loaded.engine, session, make_prompt(tokens, 0), 32);
    const std::uint64_t hash = XXH3_64bits(logits.data(), logits.size() * sizeof(float));
    EXPECT_EQ(hash, recorded) << fmt::format("{} {} on {}: {:#018x}", model, format_text, backend, hash);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, LogitHash, testing::ValuesIn(kCases), [](const auto& recorded) {
  return std::string(recorded.param.model) + "_" + recorded.param.format +
         (recorded.param.kv_type == KvType::kF16 ? "_kv_f16" : "_kv_f32");
});

}  // namespace
}  // namespace eider::test
