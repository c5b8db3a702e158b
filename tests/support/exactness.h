// What the exactness tests share: prompts, runs that keep every logit, and a comparison that names the first
// difference.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/engine.h"

namespace eider::test {

/// With EIDER_EXACTNESS=full in the environment every combination of settings runs.
inline bool full_exactness_run() {
  const char* value = std::getenv("EIDER_EXACTNESS");
  return value != nullptr && std::string_view(value) == "full";
}

/// Ids in 3..472 from a fixed linear congruence; `stream` tells prompts apart.
inline std::vector<TokenId> make_prompt(std::int64_t count, std::uint32_t stream) {
  std::vector<TokenId> ids;
  std::uint32_t state = 12345u + stream * 977u;
  for (std::int64_t i = 0; i < count; ++i) {
    state = state * 1664525u + 1013904223u;
    ids.push_back(static_cast<TokenId>(3 + (state >> 16) % 470));
  }
  return ids;
}

/// A file of float32, as recorded logits are kept; empty where it cannot be read.
inline std::vector<float> read_floats(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
  return values;
}

/// Logits of every position of `ids`, fed to `session` in chunks of `chunk` tokens.
inline std::vector<float> run_in_chunks(Engine& engine, Session& session, std::span<const TokenId> ids,
                                        std::int64_t chunk) {
  std::vector<float> logits;
  for (std::size_t at = 0; at < ids.size(); at += static_cast<std::size_t>(chunk)) {
    const std::size_t count = std::min(ids.size() - at, static_cast<std::size_t>(chunk));
    const Chunk part{&session, ids.subspan(at, count), LogitsWanted::kAll};
    const Status status = engine.forward({&part, 1});
    if (!status.ok()) throw std::runtime_error(status.error().message());
    for (std::int64_t row = 0; row < engine.logit_rows(); ++row) {
      const auto values = engine.logits(row);
      logits.insert(logits.end(), values.begin(), values.end());
    }
  }
  return logits;
}

/// Equal by memcmp, or a failure with the first differing position, token and both values.
inline void expect_same_bits(std::span<const float> ours, std::span<const float> expected,
                             std::int64_t vocab_size, const std::string& what) {
  ASSERT_EQ(ours.size(), expected.size()) << what;
  if (std::memcmp(ours.data(), expected.data(), ours.size_bytes()) == 0) return;
  for (std::size_t i = 0; i < ours.size(); ++i)
    ASSERT_EQ(std::memcmp(&ours[i], &expected[i], sizeof(float)), 0)
        << what << ": position " << i / static_cast<std::size_t>(vocab_size) << ", token "
        << i % static_cast<std::size_t>(vocab_size) << ": " << ours[i] << " vs " << expected[i];
}

}  // namespace eider::test
