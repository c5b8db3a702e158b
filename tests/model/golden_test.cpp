// Whole models against float32 reference tensors: logits, layer states, router picks and greedy
// continuations, in both styles of configuration. A failure names model, prompt, layer and tensor.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tests/support/loaded_engine.h"
#include "weights/json.h"
#include "weights/safetensors.h"

namespace eider {
namespace {

using test::golden_folder;
using test::load_engine;

constexpr float kTolerance = 3e-4f;  // float32 against float32, as the goldens' makers measured it

struct GoldenCase {
  std::string model;
  std::string config;
};
void PrintTo(const GoldenCase& golden, std::ostream* out) {
  *out << golden.model << ", " << golden.config;
}

class Golden : public testing::TestWithParam<GoldenCase> {
 protected:
  void SetUp() override {
    folder_ = golden_folder(GetParam().model);
    if (folder_.empty()) GTEST_SKIP() << "golden model " << GetParam().model << " is not here";
    json_ = read_json_file(folder_ + "/golden.json", 64 << 20).value();
    auto tensors = SafetensorsFile::open(folder_ + "/golden.safetensors");
    ASSERT_TRUE(tensors.ok()) << tensors.error().message();
    tensors_.emplace(std::move(tensors).value());
    loaded_ = load_engine(folder_ + "/" + GetParam().config, 2,
                          {.max_batch_tokens = 512, .max_logit_rows = 512, .kv_type = KvType::kF32});
  }

  template <class T>
  std::vector<T> golden(const std::string& name) const {
    const SafetensorsFile::Entry* entry = tensors_->find(name);
    if (entry == nullptr) return {};
    std::vector<T> values(entry->bytes.size() / sizeof(T));
    std::memcpy(values.data(), entry->bytes.data(), entry->bytes.size());
    return values;
  }

  void expect_near(std::span<const float> ours, const std::string& name) const {
    const std::vector<float> reference = golden<float>(name);
    ASSERT_EQ(ours.size(), reference.size()) << GetParam().model << ": " << name;
    for (std::size_t i = 0; i < reference.size(); ++i)
      ASSERT_NEAR(ours[i], reference[i], kTolerance) << GetParam().model << ": " << name << " element " << i;
  }

  std::vector<float> all_logits() const {
    std::vector<float> logits;
    for (std::int64_t row = 0; row < loaded_.engine->logit_rows(); ++row) {
      const auto values = loaded_.engine->logits(row);
      logits.insert(logits.end(), values.begin(), values.end());
    }
    return logits;
  }

  std::vector<TokenId> prompt_ids(const std::string& prompt) const {
    return json_["prompts"][prompt]["ids"].get<std::vector<TokenId>>();
  }

  std::string folder_;
  nlohmann::json json_;
  std::optional<SafetensorsFile> tensors_;
  test::LoadedEngine loaded_;
};

TEST_P(Golden, StatesOfTheShortPrompt) {
  const std::vector<TokenId> ids = prompt_ids("short");
  std::map<std::string, std::vector<float>> floats;
  std::map<std::string, std::vector<std::int32_t>> ints;
  const Plan& plan = loaded_.engine->model().plan;
  const auto keep = [&](const Op&, ValueId id, const void* data, std::int64_t rows) {
    const Value& value = plan.value(id);
    const auto count = static_cast<std::size_t>(rows * value.width);
    if (value.type == ValueType::kFloat32) {
      const auto* values = static_cast<const float*>(data);
      floats[value.name] = {values, values + count};
    } else {
      const auto* values = static_cast<const std::int32_t*>(data);
      ints[value.name] = {values, values + count};
    }
  };
  const Observer observer(keep);
  Session session = loaded_.engine->new_session();
  const Chunk chunk{&session, ids, LogitsWanted::kAll};
  const Status status = loaded_.engine->forward({&chunk, 1}, &observer);
  ASSERT_TRUE(status.ok()) << status.error().message();

  int compared = 0;
  for (const auto& [name, entry] : tensors_->entries()) {
    if (!name.starts_with("short.") || name == "short.greedy_logits") continue;
    const std::string value = name.substr(6);
    ++compared;
    if (entry.dtype == "I32") {
      EXPECT_EQ(ints[value], golden<std::int32_t>(name)) << GetParam().model << ": " << name;
    } else {
      expect_near(floats[value], name);
    }
  }
  EXPECT_GE(compared, 3 * loaded_.engine->model().num_hidden_layers + 3);
}

TEST_P(Golden, LogitsAndGreedyContinuations) {
  for (const auto& [prompt, expected] : json_["prompts"].items()) {
    const std::vector<TokenId> ids = prompt_ids(prompt);
    Session session = loaded_.engine->new_session();
    const Chunk chunk{&session, ids, LogitsWanted::kAll};
    const Status status = loaded_.engine->forward({&chunk, 1});
    ASSERT_TRUE(status.ok()) << GetParam().model << " " << prompt << ": " << status.error().message();
    const std::vector<float> logits = all_logits();
    if (tensors_->find(prompt + ".logits_last8") != nullptr) {
      const auto vocab = static_cast<std::size_t>(loaded_.engine->model().vocab_size);
      expect_near(std::span(logits).last(8 * vocab), prompt + ".logits_last8");
    } else {
      expect_near(logits, prompt + ".logits");
    }

    std::vector<float> greedy_logits;
    std::vector<TokenId> greedy;
    const std::vector<TokenId> tokens = expected["greedy"]["tokens"].get<std::vector<TokenId>>();
    for (std::size_t step = 0; step < tokens.size(); ++step) {
      const auto row = loaded_.engine->logits(loaded_.engine->logit_rows() - 1);
      greedy_logits.insert(greedy_logits.end(), row.begin(), row.end());
      const TokenId next = static_cast<TokenId>(std::ranges::max_element(row) - row.begin());
      greedy.push_back(next);
      const Chunk one{&session, {&next, 1}, LogitsWanted::kLast};
      const Status stepped = loaded_.engine->forward({&one, 1});
      ASSERT_TRUE(stepped.ok()) << GetParam().model << " " << prompt << ": " << stepped.error().message();
    }
    EXPECT_EQ(greedy, tokens) << GetParam().model << " " << prompt;
    expect_near(greedy_logits, prompt + ".greedy_logits");
  }
}

std::vector<GoldenCase> golden_cases() {
  std::vector<GoldenCase> all;
  for (const char* model :
       {"llama", "llama_tied", "qwen2", "qwen3", "qwen3_moe", "gemma3", "qwen3_fp8", "qwen3_moe_fp8"})
    for (const char* config : {"config.json", "config_published.json"}) all.push_back({model, config});
  return all;
}

INSTANTIATE_TEST_SUITE_P(Models, Golden, testing::ValuesIn(golden_cases()), [](const auto& param_info) {
  return param_info.param.model + (param_info.param.config == "config.json" ? "_config" : "_published");
});

}  // namespace
}  // namespace eider
