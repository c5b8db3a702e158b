// Embeddings of whole models: whatever steps bring the states of a prompt, and whoever shares those steps,
// the pooled state has the bits of a fold over the states that the model without a pooling gives token by
// token.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "serving/scheduler.h"
#include "tests/serving/listener.h"
#include "tests/support/exactness.h"
#include "tests/support/loaded_engine.h"
#include "tests/support/random_model.h"
#include "weights/json.h"
#include "weights/safetensors.h"

namespace eider::serving {
namespace {

using test::byte_tokenizer;
using test::Listener;
using test::make_prompt;
using test::submit;

std::string cpu() {
  return std::string(cpu_isas(detect_machine()).front());
}

Request embedding_of(std::vector<TokenId> prompt) {
  Request request;
  request.prompt = std::move(prompt);
  request.embedding = true;
  return request;
}

Request answer_to(std::vector<TokenId> prompt, std::int64_t max_tokens) {
  Request request;
  request.prompt = std::move(prompt);
  request.limits.max_tokens = max_tokens;
  request.limits.ignore_eos = true;
  request.sampling.seed = 1;
  return request;
}

/// The final norm's output for each token of the prompt, from steps of one token.
std::vector<std::vector<float>> states_of(Engine& engine, const std::vector<TokenId>& prompt) {
  std::vector<std::vector<float>> states;
  Session session = engine.new_session();
  for (const TokenId& id : prompt) {
    const Chunk chunk{&session, {&id, 1}, LogitsWanted::kLast};
    const auto keep = [&](const Op&, ValueId value, const void* data, std::int64_t rows) {
      if (engine.model().plan.value(value).name != "final_norm") return;
      ASSERT_EQ(rows, 1);
      const auto* values = static_cast<const float*>(data);
      states.emplace_back(values, values + engine.model().hidden_size);
    };
    const Observer observer(keep);
    EXPECT_TRUE(engine.forward({&chunk, 1}, &observer).ok());
  }
  return states;
}

std::vector<float> pooled(const std::vector<std::vector<float>>& states, const std::string& pooling) {
  std::vector<float> result;
  const auto n = static_cast<double>(states.size());
  for (std::size_t d = 0; d < states[0].size(); ++d) {
    double sum = 0, weighted = 0, weights = 0, most = states[0][d];
    for (std::size_t i = 0; i < states.size(); ++i) {
      const double value = states[i][d];
      const auto weight = static_cast<double>(i + 1);
      sum += value;
      weighted += weight * value;
      weights += weight;
      most = std::max(most, value);
    }
    const double value = pooling == "mean"            ? sum / n
                         : pooling == "cls"           ? states.front()[d]
                         : pooling == "max"           ? most
                         : pooling == "mean_sqrt_len" ? sum / std::sqrt(n)
                         : pooling == "weighted_mean" ? weighted / weights
                                                      : states.back()[d];
    result.push_back(static_cast<float>(value));
  }
  return result;
}

/// A model with a pooling named in its files, and the same model without.
class PooledEmbeddings : public ::testing::TestWithParam<std::pair<const char*, const char*>> {
 protected:
  PooledEmbeddings() {
    const std::string architecture = GetParam().first;
    pooling_ = GetParam().second;
    if (architecture == "qwen3") {
      plain_ = directory_.file("plain.gguf");
      model_ = directory_.file("model.gguf");
      test::RandomModel(Format::kQ8_0, false).write(plain_);
      test::RandomModel(Format::kQ8_0, false).pooling_type(pooling_ == "mean" ? 1 : 2).write(model_);
    } else {
      plain_ = test::golden_folder(architecture);
      model_ = directory_.file("model");
      std::filesystem::copy(plain_, model_);
      std::filesystem::create_directory(model_ + "/1_Pooling");
      directory_.write("model/1_Pooling/config.json", R"({"pooling_mode": ")" + mode() + "\"}");
    }
  }

  /// As sentence-transformers calls the pooling.
  std::string mode() const {
    if (pooling_ == "weighted_mean") return "weightedmean";
    if (pooling_ == "mean_sqrt_len") return "mean_sqrt_len_tokens";
    return pooling_ == "last" ? "lasttoken" : pooling_;
  }

  static test::LoadedEngine load(const std::string& model, std::int64_t batch, int threads,
                                 std::int64_t kv_limit_bytes = 0) {
    EngineOptions options;
    options.kv_type = KvType::kF32;
    options.context = 1024;
    options.max_batch_tokens = batch;
    options.max_logit_rows = options.rows_beside = 3;
    options.kv_limit_bytes = kv_limit_bytes;
    return test::load_engine(model, threads, options, cpu());
  }

  std::unique_ptr<Scheduler> start(std::int64_t batch, int threads, std::int64_t kv_limit_bytes = 0) {
    loaded_ = load(model_, batch, threads, kv_limit_bytes);
    auto scheduler = Scheduler::start(*loaded_.engine, tokenizer_, *loaded_.pool, {.max_streams = 3});
    EXPECT_TRUE(scheduler.ok()) << scheduler.error().message();
    return std::move(*scheduler);
  }

  static void expect_bits(const std::vector<float>& found, const std::vector<float>& expected,
                          const std::string& where) {
    ASSERT_EQ(found.size(), expected.size()) << where;
    EXPECT_EQ(std::memcmp(found.data(), expected.data(), found.size() * sizeof(float)), 0) << where;
  }

  test::TempDir directory_;
  std::string plain_, model_, pooling_;
  const Tokenizer tokenizer_ = byte_tokenizer();
  test::LoadedEngine loaded_;
};

TEST_P(PooledEmbeddings, AreAFoldOverTheStates) {
  const std::vector<TokenId> prompt = make_prompt(300, 1);
  const auto states = states_of(*load(plain_, 1, 1).engine, prompt);
  const std::vector<float> expected = pooled(states, pooling_);
  const std::vector<float> of_one = pooled({states[0]}, pooling_);
  for (const auto& [batch, threads] : {std::pair(4, 1), {37, 2}, {512, 2}}) {
    const auto scheduler = start(batch, threads);
    const std::string where = pooling_ + " in steps of " + std::to_string(batch);
    // Alone; then among others, with all of the prompt in the cache.
    for (const bool among_others : {false, true}) {
      std::vector<Listener> others;
      if (among_others) {
        submit(*scheduler, answer_to(prompt, 3)).wait();
        others = {submit(*scheduler, answer_to(make_prompt(50, 2), 60)),
                  submit(*scheduler, embedding_of(prompt))};
      }
      const Listener listener = submit(*scheduler, embedding_of(prompt));
      listener.wait();
      expect_bits(listener.embedded().state, expected, where);
      // The states of what is remembered are not, and all are needed but by "last".
      EXPECT_EQ(listener.embedded().cached_tokens, pooling_ == "last" && among_others ? 299 : 0);
      for (const Listener& other : others) other.wait();
      if (among_others) expect_bits(others[1].embedded().state, expected, where);
    }
    const Listener one = submit(*scheduler, embedding_of({prompt[0]}));
    one.wait();
    expect_bits(one.embedded().state, of_one, where + ", one token");
  }
}

// The model answers as the one without a pooling does.
TEST_P(PooledEmbeddings, LeaveAnswersAlone) {
  const test::LoadedEngine plain = load(plain_, 128, 1);
  const auto scheduler = start(128, 2);
  const Request request = answer_to(make_prompt(200, 3), 20);
  const Listener listener = submit(*scheduler, request);
  listener.wait();
  test::expect_same(listener.choice(), test::compute_alone(*plain.engine, tokenizer_, request), pooling_);
}

/// With full attention alone: windows need less memory.
class PreemptedEmbeddings : public PooledEmbeddings {};

// What was folded before a preemption is not folded again.
TEST_P(PreemptedEmbeddings, BeginAnew) {
  const std::vector<TokenId> prompt = make_prompt(500, 1);
  const test::LoadedEngine plain = load(plain_, 4, 1);
  const KvPool& kv = plain.engine->kv_pool();
  const std::vector<float> expected = pooled(states_of(*plain.engine, prompt), pooling_);
  // The answer's blocks and the prompt's four: the answer grows while the prompt is computed.
  const auto scheduler = start(4, 1, 5 * kv.block_bytes(0));
  const Listener answer = submit(*scheduler, answer_to(make_prompt(60, 2), 450));
  const Listener listener = submit(*scheduler, embedding_of(prompt));
  listener.wait();
  answer.wait();
  EXPECT_GE(scheduler->stats().preemptions, 1);
  expect_bits(listener.embedded().state, expected, pooling_);
}

/// With reference states beside the model.
class GoldenEmbeddings : public PooledEmbeddings {};

// transformers' states, folded here.
TEST_P(GoldenEmbeddings, AreOfTheReferencesStates) {
  const auto golden = SafetensorsFile::open(plain_ + "/golden.safetensors");
  ASSERT_TRUE(golden.ok()) << golden.error().message();
  const SafetensorsFile::Entry& entry = *golden->find("short.final_norm");
  std::vector<std::vector<float>> states(static_cast<std::size_t>(entry.shape[0]),
                                         std::vector<float>(static_cast<std::size_t>(entry.shape[1])));
  const std::size_t row_bytes = states[0].size() * sizeof(float);
  for (std::size_t i = 0; i < states.size(); ++i)
    std::memcpy(states[i].data(), entry.bytes.data() + i * row_bytes, row_bytes);
  const std::vector<float> expected = pooled(states, pooling_);

  const auto prompts = read_json_file(plain_ + "/golden.json", 64 << 20).value()["prompts"];
  const auto scheduler = start(16, 1);
  const Listener listener =
      submit(*scheduler, embedding_of(prompts["short"]["ids"].get<std::vector<TokenId>>()));
  listener.wait();
  const std::vector<float> found = listener.embedded().state;
  ASSERT_EQ(found.size(), expected.size());
  constexpr float kTolerance = 3e-4f;  // as tests/model/golden_test.cpp
  for (std::size_t i = 0; i < found.size(); ++i) ASSERT_NEAR(found[i], expected[i], kTolerance) << i;
}

std::string name_of(const ::testing::TestParamInfo<std::pair<const char*, const char*>>& model) {
  return std::string(model.param.first) + "_" + model.param.second;
}

INSTANTIATE_TEST_SUITE_P(Models, PooledEmbeddings,
                         ::testing::Values(std::pair("qwen3", "mean"), std::pair("qwen3", "cls"),
                                           std::pair("gemma3", "last"), std::pair("gemma3", "mean"),
                                           std::pair("gemma3", "max"), std::pair("gemma3", "mean_sqrt_len"),
                                           std::pair("gemma3", "weighted_mean")),
                         name_of);
INSTANTIATE_TEST_SUITE_P(Models, GoldenEmbeddings,
                         ::testing::Values(std::pair("llama", "mean"), std::pair("gemma3", "cls"),
                                           std::pair("qwen3_moe", "max")),
                         name_of);
INSTANTIATE_TEST_SUITE_P(Models, PreemptedEmbeddings, ::testing::Values(std::pair("qwen3", "mean")), name_of);

// It still loads and answers.
TEST(Embeddings, OfAModelThatScoresTextsAreRefused) {
  const test::TempDir directory;
  test::RandomModel(Format::kQ8_0, false).pooling_type(4).write(directory.file("model.gguf"));
  EngineOptions options;
  options.context = 64;
  options.rows_beside = options.max_logit_rows;
  const test::LoadedEngine loaded = test::load_engine(directory.file("model.gguf"), 1, options, cpu());
  const Tokenizer tokenizer = byte_tokenizer();
  auto scheduler = Scheduler::start(*loaded.engine, tokenizer, *loaded.pool, {});
  ASSERT_TRUE(scheduler.ok());
  const auto taken = (*scheduler)->submit(embedding_of({3}), [](Event) {});
  const auto* refusal = std::get_if<Refusal>(&taken);
  ASSERT_NE(refusal, nullptr);
  EXPECT_EQ(refusal->kind, Refusal::Kind::kUnsupported);
  EXPECT_EQ(refusal->message,
            "this model gives no embeddings: metadata key qwen3.pooling_type: 4 (rank) is "
            "not supported: its model scores texts");
  const Listener answer = submit(**scheduler, answer_to({3, 4}, 2));
  answer.wait();
  EXPECT_EQ(answer.choice().ids.size(), 2u);
}

}  // namespace
}  // namespace eider::serving
