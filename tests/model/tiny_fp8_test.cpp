// FP8 checkpoints of tests/data/tiny: logits are those of the dequantised model in float64, on every backend
// and in both forms that FP8 is executed in.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/exactness.h"
#include "tests/support/loaded_engine.h"
#include "weights/json.h"

namespace eider {
namespace {

const std::string kTinyFolder = EIDER_TEST_DATA "/tiny/";
constexpr float kFp8Tolerance = 1e-4f;  // of float32; logits have a deviation of 1.5

class TinyFp8Models : public testing::TestWithParam<const char*> {};

TEST_P(TinyFp8Models, HaveTheLogitsOfTheDequantisedModel) {
  const auto all = read_json_file(kTinyFolder + "fp8_models.json", 1 << 20);
  ASSERT_TRUE(all) << all.error().message();
  const auto tokens = all->at(GetParam()).get<std::vector<TokenId>>();
  const auto count = static_cast<std::int64_t>(tokens.size());
  const std::string path = kTinyFolder + GetParam();
  const std::vector<float> expected = test::read_floats(path + "/logits");
  std::vector<std::string> backends = test::cpu_backends(true);
  backends.emplace_back("reference");
  for (const std::string& backend : backends) {
    const auto loaded =
        test::load_engine(path, 2, {.max_logit_rows = count, .kv_type = KvType::kF32}, backend);
    Session session = loaded.engine->new_session();
    const std::vector<float> logits = test::run_in_chunks(*loaded.engine, session, tokens, count);
    ASSERT_EQ(logits.size(), expected.size());
    for (std::size_t i = 0; i < logits.size(); ++i)
      ASSERT_NEAR(logits[i], expected[i], kFp8Tolerance) << backend << ", logit " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Files, TinyFp8Models, testing::Values("qwen3_fp8", "qwen3_moe_fp8"),
                         [](const auto& model) { return std::string(model.param); });

}  // namespace
}  // namespace eider
