// The promise of docs/NUMERICS.md on whole models: logits are equal by memcmp whatever the threads, prompt
// chunks and batch mates, and whether a token was prefilled or decoded. The default run covers each setting
// beside a fixed one; with EIDER_EXACTNESS=full every combination runs.
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "tests/support/exactness.h"
#include "tests/support/loaded_engine.h"
#include "tests/support/random_model.h"

namespace eider {
namespace {

using test::expect_same_bits;
using test::make_prompt;
using test::run_in_chunks;

constexpr std::int64_t kPromptTokens = 1100;  // nine KV blocks, the last one partial

/// A golden model, or a random one with its matrices in `format`.
struct ExactCase {
  std::string model;
  KvType kv_type;
  std::optional<Format> format = std::nullopt;
};
void PrintTo(const ExactCase& exact, std::ostream* out) {
  *out << exact.model << (exact.format ? std::string(" ") + format_name(*exact.format) : "");
}

class Exactness : public testing::TestWithParam<ExactCase> {
 protected:
  void SetUp() override {
    if (GetParam().format) {
      path_ = directory_.file("model.gguf");
      test::RandomModel(*GetParam().format, GetParam().model == "random_moe").write(path_);
      return;
    }
    path_ = test::golden_folder(GetParam().model);
    if (path_.empty()) GTEST_SKIP() << "golden model " << GetParam().model << " is not here";
  }

  test::LoadedEngine load(int threads, std::string_view backend = "reference") const {
    return test::load_engine(
        path_, threads,
        {.context = 1300, .max_batch_tokens = 512, .max_logit_rows = 512, .kv_type = GetParam().kv_type},
        backend);
  }

  test::TempDir directory_;
  std::string path_;
};

TEST_P(Exactness, ThreadsAndChunks) {
  const std::vector<TokenId> prompt = make_prompt(kPromptTokens, 0);
  auto first = load(1);
  const std::int64_t vocab_size = first.engine->model().vocab_size;
  Session session = first.engine->new_session();
  const std::vector<float> baseline = run_in_chunks(*first.engine, session, prompt, 512);
  for (const int threads : {1, 2, 3, 5, 16}) {
    auto loaded = load(threads);
    for (const std::int64_t chunk : {1, 7, 32, 128, 512}) {
      // Chunks of 1 are decode steps, so this is also decode against prefill.
      if (!test::full_exactness_run() && threads != 2 && chunk != 128) continue;
      Session other = loaded.engine->new_session();
      expect_same_bits(run_in_chunks(*loaded.engine, other, prompt, chunk), baseline, vocab_size,
                       fmt::format("{}, {} threads, chunks of {}", GetParam().model, threads, chunk));
    }
  }
}

TEST_P(Exactness, InstructionSets) {
  const std::vector<TokenId> prompt = make_prompt(kPromptTokens, 0);
  auto reference = load(2);
  const std::int64_t vocab_size = reference.engine->model().vocab_size;
  Session session = reference.engine->new_session();
  const std::vector<float> expected = run_in_chunks(*reference.engine, session, prompt, 512);
  for (const std::string_view isa : cpu_isas(detect_machine())) {
    for (const int threads : {1, 2, 3, 5, 16}) {
      auto loaded = load(threads, isa);
      for (const std::int64_t chunk : {1, 7, 32, 128, 512}) {
        if (!test::full_exactness_run() && (threads != 3 || chunk == 32 || chunk == 128)) continue;
        Session other = loaded.engine->new_session();
        expect_same_bits(
            run_in_chunks(*loaded.engine, other, prompt, chunk), expected, vocab_size,
            fmt::format("{}, {}, {} threads, chunks of {}", GetParam().model, isa, threads, chunk));
      }
    }
  }
}

TEST_P(Exactness, BatchWidths) {
  // Eight sessions of different lengths, each first run alone; then decoded together in widths 1 to 8, and in
  // the last step one takes five tokens beside the others' single ones.
  const std::int64_t lengths[8] = {kPromptTokens, 1, 127, 128, 129, 20, 300, 7};
  constexpr std::int64_t kTokensAfter = 8;
  auto loaded = load(2);
  Engine& engine = *loaded.engine;
  const std::int64_t vocab_size = engine.model().vocab_size;
  const auto row = static_cast<std::size_t>(vocab_size);
  std::vector<std::vector<TokenId>> ids;
  std::vector<std::vector<float>> alone;
  for (std::uint32_t i = 0; i < 8; ++i) {
    ids.push_back(make_prompt(lengths[i] + kTokensAfter, i));
    Session session = engine.new_session();
    alone.push_back(run_in_chunks(engine, session, ids[i], 512));
  }
  for (std::size_t width = 1; width <= 8; ++width) {
    std::vector<Session> sessions;
    std::vector<std::size_t> done;
    for (std::size_t i = 0; i < width; ++i) {
      done.push_back(static_cast<std::size_t>(lengths[i]));
      sessions.push_back(engine.new_session());
      run_in_chunks(engine, sessions.back(), std::span(ids[i]).first(done[i]), 512);
    }
    for (const std::size_t first_takes : {1, 1, 1, 5}) {
      std::vector<Chunk> chunks;
      for (std::size_t i = 0; i < width; ++i)
        chunks.push_back({&sessions[i], std::span(ids[i]).subspan(done[i], i == 0 ? first_takes : 1),
                          LogitsWanted::kLast});
      const Status status = engine.forward(chunks);
      ASSERT_TRUE(status.ok()) << status.error().message();
      for (std::size_t i = 0; i < width; ++i) {
        done[i] += chunks[i].tokens.size();
        expect_same_bits(
            engine.logits(static_cast<std::int64_t>(i)),
            std::span(alone[i]).subspan((done[i] - 1) * row, row), vocab_size,
            fmt::format("{}, width {}, session {}, position {}", GetParam().model, width, i, done[i] - 1));
      }
    }
  }
}

std::vector<ExactCase> cases() {
  std::vector<ExactCase> all;
  for (const char* model : {"llama", "qwen3_moe", "gemma3"})
    for (const KvType kv_type : {KvType::kF16, KvType::kF32}) all.push_back({model, kv_type});
#define EIDER_CASES(F)                                       \
  all.push_back({"random_dense", KvType::kF16, F::kFormat}); \
  all.push_back({"random_moe", KvType::kF16, F::kFormat});
  EIDER_FORMATS(EIDER_CASES)
#undef EIDER_CASES
  return all;
}

INSTANTIATE_TEST_SUITE_P(Models, Exactness, testing::ValuesIn(cases()), [](const auto& param_info) {
  const std::string kv = param_info.param.kv_type == KvType::kF16 ? "_kv_f16" : "_kv_f32";
  return param_info.param.model +
         (param_info.param.format ? std::string("_") + format_name(*param_info.param.format) : "") + kv;
});

}  // namespace
}  // namespace eider
