#include "bench/model_bench.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/random.h"
#include "bench/model_work.h"
#include "runtime/logits_hash.h"

namespace eider::bench {
namespace {

std::vector<TokenId> random_tokens(std::int64_t count, std::int64_t vocab_size) {
  constexpr std::uint64_t kSeed = 1;
  std::vector<TokenId> tokens;
  for (std::int64_t i = 0; i < count; ++i)
    tokens.push_back(static_cast<TokenId>(uniform_draw(kSeed, static_cast<std::uint64_t>(i), 0) *
                                          static_cast<double>(vocab_size)));
  return tokens;
}

/// The tests of one engine.
class ModelBench {
 public:
  ModelBench(Engine& engine, const std::vector<ModelTest>& tests, int repetitions, const Progress& progress,
             const TimeLimit& limit)
      : engine_(engine), repetitions_(repetitions), progress_(progress), limit_(limit) {
    tokens_ = random_tokens(context_of(tests), engine.model().vocab_size);
    for (const ModelTest& test : tests) total_ += test.depth + (repetitions + 1) * test.tokens();
  }

  /// Tokens a second of each repetition that there was time for. The run before them, which is not counted,
  /// is the one whose logits are hashed.
  Result<Samples> measure(const ModelTest& test, const std::function<Roof()>& read_roof, Roof& before,
                          std::uint64_t& logits_hash) {
    Session session = engine_.new_session();
    Samples samples;
    const auto warm_up = [&]() -> Status {
      EIDER_TRY_STATUS(fill(session, test.depth));
      session.mark_prompt_end();
      LogitsHash hash;
      EIDER_TRY_STATUS(run(session, test, &hash));
      logits_hash = hash.value();
      if (read_roof) before = read_roof();
      return {};
    };
    const auto repeat = [&]() -> Status {
      session.rewind(test.depth);
      EIDER_TRY_STATUS(fill(session, test.depth));  // where windows made it go back further
      Status status;
      const double seconds = seconds_of([&] { status = run(session, test, nullptr); });
      EIDER_TRY_STATUS(status);
      samples.add(static_cast<double>(test.tokens()) / seconds);
      return {};
    };
    Status status = warm_up();
    for (int i = 0; status.ok() && i < repetitions_; ++i) status = repeat();
    if (!status.ok() && !out_of_time_) return std::move(status).error();
    return samples;
  }

 private:
  std::span<const TokenId> tokens(std::int64_t begin, std::int64_t end) const {
    return std::span(tokens_).subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin));
  }

  /// `hash` may be null.
  Status run(Session& session, const ModelTest& test, LogitsHash* hash) {
    const std::int64_t end = session.length() + test.tokens();
    if (test.prompt > 0) {
      EIDER_TRY_STATUS(fill(session, end));
      if (hash != nullptr) hash->add(engine_.logits());
      return {};
    }
    while (session.length() < end) {
      const Chunk chunk{&session, tokens(session.length(), session.length() + 1)};
      EIDER_TRY_STATUS(engine_.forward({&chunk, 1}));
      if (hash != nullptr) hash->add(engine_.logits());
      EIDER_TRY_STATUS(advance(1));
    }
    return {};
  }

  /// Makes the session `length` tokens long, as a prompt.
  Status fill(Session& session, std::int64_t length) {
    if (session.length() >= length) return {};
    const std::int64_t before = done_;
    Status go_on;
    EIDER_TRY_STATUS(
        engine_.prefill(session, tokens(session.length(), length), [&](std::int64_t done, std::int64_t) {
          go_on = advance(before + done - done_);
          return go_on.ok();
        }));
    return go_on;
  }

  /// Between two steps: fails where the measurement is to end.
  Status advance(std::int64_t tokens) {
    done_ += tokens;
    if (!progress_(std::min(done_, total_), total_)) return error("interrupted");
    out_of_time_ = limit_.over();
    return out_of_time_ ? error("its time is over") : Status();
  }

  Engine& engine_;
  int repetitions_;
  const Progress& progress_;
  const TimeLimit& limit_;
  std::vector<TokenId> tokens_;
  std::int64_t done_ = 0, total_ = 0;
  bool out_of_time_ = false;
};

}  // namespace

std::string ModelTest::name() const {
  const std::string test = prompt > 0 ? fmt::format("pp{}", prompt) : fmt::format("tg{}", generate);
  return depth > 0 ? fmt::format("{} @ d{}", test, depth) : test;
}

std::int64_t context_of(const std::vector<ModelTest>& tests) {
  std::int64_t context = 1;
  for (const ModelTest& test : tests) context = std::max(context, test.depth + test.tokens());
  return context;
}

Result<std::vector<ModelResult>> measure_model(Engine& engine, const ModelRun& run,
                                               const std::vector<ModelTest>& tests, int repetitions,
                                               const std::function<Roof()>& read_roof,
                                               const Progress& progress, const TimeLimit& limit) {
  const Plan& plan = engine.model().plan;
  ModelBench bench(engine, tests, repetitions, progress, limit);
  std::vector<ModelResult> results;
  for (const ModelTest& test : tests) {
    ModelResult result{.run = run, .test = test};
    Roof before;
    EIDER_TRY(result.tok_s, bench.measure(test, read_roof, before, result.logits_hash));
    if (result.tok_s.values().empty()) break;
    if (read_roof) {
      const Roof after = read_roof();
      result.roof = Roof::between(before, after);
      result.roof_change = after.memory_read / before.memory_read - 1;
    }

    const double positions = static_cast<double>(test.depth) + static_cast<double>(test.generate + 1) / 2;
    result.bytes_per_token = decode_bytes(plan, engine.options().kv_type, positions);
    const double token_seconds = 1 / result.tok_s.median();
    if (test.generate > 0) {
      const Work work{.bytes = result.bytes_per_token};
      result.fraction_of_roof = share_of_roof(work, token_seconds, result.roof).memory;
    } else {
      const double seconds = token_seconds * static_cast<double>(test.prompt);
      result.fraction_of_roof =
          share_of_roof(prefill_work(plan, test.prompt), seconds, result.roof).arithmetic;
    }
    results.push_back(std::move(result));
  }
  return results;
}

}  // namespace eider::bench
