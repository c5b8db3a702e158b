// The promise of docs/NUMERICS.md on whole models: logits are equal by memcmp whatever the instruction set,
// the threads, the prompt's chunks, the batch mates and whether a token was prefilled or decoded. The default
// run has every pair of settings; with EIDER_EXACTNESS=full every model runs their full product.
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "format/all_formats.h"
#include "tests/support/covering_array.h"
#include "tests/support/exactness.h"
#include "tests/support/loaded_engine.h"
#include "tests/support/random_model.h"
#include "tests/support/tiny_shape.h"
#include "weights/synthetic.h"

namespace eider {
namespace {

using test::expect_same_bits;
using test::make_prompt;

struct Settings {
  std::string backend;
  int threads;
  std::int64_t chunk;
  std::size_t batch;
  KvType kv_type;
};
std::string describe(const Settings& s) {
  return fmt::format("{}, {} threads, chunks of {}, batch of {}, KV {}", s.backend, s.threads, s.chunk,
                     s.batch, s.kv_type == KvType::kF16 ? "F16" : "F32");
}

std::vector<Settings> all_settings(bool fp8) {
  std::vector<std::string> backends = test::cpu_backends(fp8);
  backends.insert(backends.begin(), "reference");
  const std::vector<int> threads = {1, 2, 3, 5, 16};
  const std::vector<std::int64_t> chunks = {1, 7, 32, 128, 512};
  constexpr KvType kKvTypes[] = {KvType::kF16, KvType::kF32};
  const std::vector<int> levels = {static_cast<int>(backends.size()), static_cast<int>(threads.size()),
                                   static_cast<int>(chunks.size()), 8, 2};
  std::vector<Settings> settings;
  for (const std::vector<int>& row :
       test::full_exactness_run() ? test::full_product(levels) : test::covering_array(levels)) {
    const auto level = [&](std::size_t factor) { return static_cast<std::size_t>(row[factor]); };
    settings.push_back(
        {backends[level(0)], threads[level(1)], chunks[level(2)], level(3) + 1, kKvTypes[level(4)]});
  }
  return settings;
}

TEST(CoveringArray, HasEveryPairOfLevels) {
  const std::vector<int> levels = {3, 1, 5, 2};
  const std::vector<std::vector<int>> rows = test::covering_array(levels);
  EXPECT_LT(rows.size(), 20u);  // 15 pairs of the largest two factors are the fewest
  for (std::size_t f = 0; f < levels.size(); ++f)
    for (std::size_t g = 0; g < f; ++g)
      for (int a = 0; a < levels[f]; ++a)
        for (int b = 0; b < levels[g]; ++b)
          EXPECT_TRUE(std::ranges::any_of(rows, [&](const auto& row) { return row[f] == a && row[g] == b; }))
              << f << ": " << a << ", " << g << ": " << b;
}

/// A golden model, or a random one with its matrices in `format`. Models of a kind share the rows of a
/// default run.
struct ExactCase {
  std::string model;
  std::optional<Format> format;
  std::size_t index = 0, of_kind = 1;

  bool fp8() const { return model.ends_with("fp8") || format == Format::kFP8_E4M3; }
};
void PrintTo(const ExactCase& exact, std::ostream* out) {
  *out << exact.model << (exact.format ? std::string(" ") + format_name(*exact.format) : "");
}

class Exactness : public testing::TestWithParam<ExactCase> {
 protected:
  static constexpr std::int64_t kMostRows = 1024;  // of a step

  void SetUp() override {
    const auto& [model, format, index, of_kind] = GetParam();
    path_ = test::golden_folder(model);
    if (format) {
      path_ = directory_.file(GetParam().fp8() ? "model" : "model.gguf");
      if (GetParam().fp8())
        write_fp8_directory(model == "random_moe");
      else
        test::RandomModel(*format, model == "random_moe").write(path_);
    }
    if (path_.empty()) GTEST_SKIP() << "golden model " << model << " is not here";
    // The first session has chunks of 512 and six KV blocks; the others begin and end about a block's border.
    const std::int64_t lengths[8] = {format ? 200 : 700, 5, 131, 132, 133, 20, 300, 8};
    for (std::uint32_t i = 0; i < 8; ++i) prompts_.push_back(make_prompt(lengths[i], i));
  }

  /// GGUF files have no FP8.
  void write_fp8_directory(bool moe) const {
    ModelShape shape = tiny_shape(moe ? "qwen3moe" : "qwen3");
    shape.vocab_size = 480;
    ThreadPool pool(2);
    const auto synthetic = SyntheticModel::create({.shape = shape, .format = Format::kFP8_E4M3}, pool);
    ASSERT_TRUE(synthetic.ok());
    ASSERT_TRUE(synthetic->write(path_).ok());
  }

  test::LoadedEngine load(const Settings& settings) const {
    const EngineOptions options{.context = 1024,
                                .max_batch_tokens = kMostRows,
                                .max_logit_rows = kMostRows,
                                .kv_type = settings.kv_type};
    return test::load_engine(path_, settings.threads, options, settings.backend);
  }

  /// The logits of each of the first settings.batch prompts, which run side by side: in chunks, but the last
  /// four tokens one by one.
  std::vector<std::vector<float>> run(const Settings& settings) const {
    auto loaded = load(settings);
    std::vector<Session> sessions;
    for (std::size_t i = 0; i < settings.batch; ++i) sessions.push_back(loaded.engine->new_session());
    std::vector<std::size_t> done(settings.batch);
    std::vector<std::vector<float>> logits(settings.batch);
    for (;;) {
      std::vector<Chunk> chunks;
      std::vector<std::size_t> members;
      std::int64_t room = kMostRows;
      for (std::size_t i = 0; i < settings.batch; ++i) {
        const auto left = static_cast<std::int64_t>(prompts_[i].size() - done[i]);
        const std::int64_t count =
            std::min(left <= 4 ? std::min<std::int64_t>(left, 1) : std::min(settings.chunk, left - 4), room);
        if (count == 0) continue;
        chunks.push_back({&sessions[i],
                          std::span(prompts_[i]).subspan(done[i], static_cast<std::size_t>(count)),
                          LogitsWanted::kAll});
        members.push_back(i);
        room -= count;
      }
      if (chunks.empty()) return logits;
      const Status status = loaded.engine->forward(chunks);
      if (!status.ok()) throw std::runtime_error(status.error().message());
      std::int64_t row = 0;
      for (std::size_t c = 0; c < chunks.size(); ++c)
        for (std::size_t token = 0; token < chunks[c].tokens.size(); ++token) {
          const auto values = loaded.engine->logits(row++);
          logits[members[c]].insert(logits[members[c]].end(), values.begin(), values.end());
          ++done[members[c]];
        }
    }
  }

  /// The same by the reference, each prompt alone and whole.
  std::vector<std::vector<float>> expected(KvType kv_type) const {
    auto loaded = load({"reference", 2, kMostRows, 1, kv_type});
    std::vector<std::vector<float>> logits;
    for (const std::vector<TokenId>& prompt : prompts_) {
      Session session = loaded.engine->new_session();
      logits.push_back(test::run_in_chunks(*loaded.engine, session, prompt, kMostRows));
    }
    return logits;
  }

  test::TempDir directory_;
  std::string path_;
  std::vector<std::vector<TokenId>> prompts_;
};

TEST_P(Exactness, PairsOfSettings) {
  const std::vector<std::vector<float>> by_kv_type[] = {expected(KvType::kF16), expected(KvType::kF32)};
  const auto vocab_size = static_cast<std::int64_t>(by_kv_type[0][0].size() / prompts_[0].size());
  std::size_t row = 0;
  for (const Settings& settings : all_settings(GetParam().fp8())) {
    if (!test::full_exactness_run() && row++ % GetParam().of_kind != GetParam().index) continue;
    const std::vector<std::vector<float>> logits = run(settings);
    for (std::size_t i = 0; i < logits.size(); ++i)
      expect_same_bits(logits[i], by_kv_type[settings.kv_type == KvType::kF16 ? 0 : 1][i], vocab_size,
                       fmt::format("{}, session {}", describe(settings), i));
  }
}

std::vector<ExactCase> exact_cases() {
  std::vector<ExactCase> golden = {{"llama", {}}, {"qwen3_moe", {}}, {"gemma3", {}}};
  // FP8 has more settings, which are a kind's of their own.
  std::vector<ExactCase> random, fp8 = {{"qwen3_fp8", {}}, {"qwen3_moe_fp8", {}}};
  for (const Format format : kAllFormats)
    for (const char* model : {"random_dense", "random_moe"})
      (format == Format::kFP8_E4M3 ? fp8 : random).push_back({model, format});
  std::vector<ExactCase> all;
  for (std::vector<ExactCase>* kind : {&golden, &random, &fp8})
    for (std::size_t i = 0; i < kind->size(); ++i) {
      (*kind)[i].index = i;
      (*kind)[i].of_kind = kind->size();
      all.push_back((*kind)[i]);
    }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Models, Exactness, testing::ValuesIn(exact_cases()), [](const auto& exact) {
  return exact.param.model + (exact.param.format ? std::string("_") + format_name(*exact.param.format) : "");
});

}  // namespace
}  // namespace eider
