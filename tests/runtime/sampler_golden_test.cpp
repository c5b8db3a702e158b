// The sampling vectors of tests/data/golden/sampling: probabilities after transformers' logits processors.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "runtime/sampler.h"
#include "weights/json.h"

namespace eider {
namespace {

using nlohmann::json;

constexpr std::size_t kLogits = 1000;

std::string read_vectors(const std::string& name) {
  std::ifstream file(std::string(EIDER_TEST_DATA) + "/golden/sampling/" + name, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// All tensors of a small safetensors file, 4 bytes an element.
template <class T>
std::vector<T> read_tensor(const std::string& file, const std::string& name) {
  std::uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, file.data(), sizeof header_bytes);
  const json header = parse_json(file.substr(8, header_bytes)).value();
  const std::size_t begin = header.at(name).at("data_offsets").at(0);
  const std::size_t end = header.at(name).at("data_offsets").at(1);
  std::vector<T> values((end - begin) / sizeof(T));
  std::memcpy(values.data(), file.data() + 8 + header_bytes + begin, end - begin);
  return values;
}

TEST(SamplerGolden, ProbabilitiesEqualTransformers) {
  const json description = parse_json(read_vectors("sampling.json")).value();
  const std::string tensors = read_vectors("sampling.safetensors");
  const json& cases = description.at("cases");
  ASSERT_EQ(cases.size(), 38u);

  for (std::size_t number = 0; number < cases.size(); ++number) {
    SCOPED_TRACE(cases[number].dump());
    const json& one = cases[number];
    SamplerOptions options;
    options.temperature = one.value("temperature", 1.0f);
    options.top_k = one.value("top_k", 0);
    options.top_p = one.value("top_p", 1.0f);
    options.min_p = one.value("min_p", 0.0f);
    options.repeat_penalty = one.value("repetition_penalty", 1.0f);
    options.penalty_last_n = -1;
    options.stages = {SamplerStage::kPenalties, SamplerStage::kTemperature, SamplerStage::kTopK,
                      SamplerStage::kTopP, SamplerStage::kMinP};
    const auto logits = read_tensor<float>(tensors, "logits." + one.at("logits").get<std::string>());
    const auto expected = read_tensor<float>(tensors, one.at("probs").get<std::string>());
    ASSERT_EQ(logits.size(), kLogits);
    ASSERT_EQ(expected.size(), kLogits);
    std::vector<TokenId> history;
    if (one.contains("repetition_penalty")) {
      for (const std::int64_t id : read_tensor<std::int64_t>(tensors, "previous_tokens")) {
        history.push_back(static_cast<TokenId>(id));
      }
    }

    auto sampler = Sampler::create(options, kLogits);
    ASSERT_TRUE(sampler.ok()) << sampler.error().message();
    const auto kept = sampler->candidates(logits, history);
    double total = 0;
    for (const auto& candidate : kept) total += candidate.weight;

    std::vector<double> reference(expected.begin(), expected.end());
    if (number == 34 || number == 35) {
      // The reference keeps every token tied with the k-th; we keep exactly k, the lowest ids of those tied.
      std::vector<TokenId> order(kLogits);
      for (std::size_t id = 0; id < kLogits; ++id) order[id] = static_cast<TokenId>(id);
      std::stable_sort(order.begin(), order.end(), [&](TokenId a, TokenId b) {
        return logits[static_cast<std::size_t>(a)] > logits[static_cast<std::size_t>(b)];
      });
      ASSERT_GT(one.at("kept").get<std::int64_t>(), options.top_k);
      double rest = 0;
      for (std::size_t rank = 0; rank < kLogits; ++rank) {
        double& probability = reference[static_cast<std::size_t>(order[rank])];
        if (static_cast<std::int64_t>(rank) >= options.top_k) probability = 0;
        rest += probability;
      }
      for (double& probability : reference) probability /= rest;
      EXPECT_EQ(static_cast<std::int64_t>(kept.size()), options.top_k);
    } else {
      EXPECT_EQ(kept.size(), one.at("kept").get<std::size_t>());
    }

    EXPECT_EQ(kept.front().id, one.at("argmax").get<TokenId>());
    std::vector<double> probabilities(kLogits, 0.0);
    for (const auto& candidate : kept) {
      probabilities[static_cast<std::size_t>(candidate.id)] = candidate.weight / total;
    }
    for (std::size_t id = 0; id < kLogits; ++id) {
      ASSERT_NEAR(probabilities[id], reference[id], 1e-7 + 1e-5 * reference[id]) << "token " << id;
    }
  }
}

}  // namespace
}  // namespace eider
