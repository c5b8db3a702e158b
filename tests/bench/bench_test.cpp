// The arithmetic behind the figures, by hand, and small runs of every measurement.
#include <gtest/gtest.h>

#include <cmath>

#include "backend/cpu/cpu_backend.h"
#include "bench/attention_bench.h"
#include "bench/estimate.h"
#include "bench/html.h"
#include "bench/kernel_bench.h"
#include "bench/machine_bench.h"
#include "bench/model_bench.h"
#include "bench/model_work.h"
#include "bench/peaks.h"
#include "bench/samples.h"
#include "bench/table.h"
#include "format/all_formats.h"
#include "tests/support/loaded_engine.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_shape.h"
#include "weights/synthetic.h"

namespace eider::bench {
namespace {

const Progress kOn = [](std::int64_t, std::int64_t) { return true; };
constexpr std::size_t kMiB = std::size_t{1} << 20;

TEST(Samples, MedianAndSpread) {
  EXPECT_EQ(Samples().median(), 0);
  EXPECT_EQ(Samples({3}).median(), 3);
  EXPECT_EQ(Samples({3}).spread(), 0);
  EXPECT_EQ(Samples({4, 1, 3, 2}).median(), 2.5);
  EXPECT_EQ(Samples({5, 1, 2, 4, 3}).spread(), 1);  // quartiles 2 and 4
  EXPECT_EQ(Samples({1, 2, 3, 4, 1e9}).median(), 3);
}

/// A clock that goes on by a second each time it is looked at.
Clock seconds_by_looks(double& now) {
  return [&now] { return now++; };
}

TEST(TimeLimit, IsOverAtItsEnd) {
  double now = 5;
  const TimeLimit limit(3, [&] { return now; });
  EXPECT_FALSE(limit.over());
  now = 7.9;
  EXPECT_FALSE(limit.over());
  now = 8;
  EXPECT_TRUE(limit.over());
  EXPECT_FALSE(TimeLimit().over());
  EXPECT_FALSE(TimeLimit(1e6).over());
  EXPECT_TRUE(TimeLimit(-1).over());
}

TEST(Samples, AreFewerWhereTheTimeIsOver) {
  int runs = 0;
  const auto work = [&] { ++runs; };
  EXPECT_EQ(sample_rate(5, 1, work).values().size(), 5U);
  EXPECT_EQ(runs, 6);
  double now = 0;
  EXPECT_EQ(sample_rate(5, 1, work, TimeLimit(3, seconds_by_looks(now))).values().size(), 3U);
  EXPECT_EQ(sample_rate(5, 1, work, TimeLimit(-1)).values().size(), 1U);
}

TEST(Table, IsWrittenInEveryStyle) {
  const Table table{"Figures", {{"name", false}, {"t/s"}}, {{"a, b", "1.0 ± 0.1"}, {"\"c\"", "20"}}};
  EXPECT_EQ(to_string(table, TableStyle::kText),
            "Figures\n"
            "name        t/s\n"
            "a, b  1.0 ± 0.1\n"
            "\"c\"          20\n");
  EXPECT_EQ(to_string(table, TableStyle::kMarkdown),
            "### Figures\n\n"
            "| name |       t/s |\n"
            "| ---- | --------: |\n"
            "| a, b | 1.0 ± 0.1 |\n"
            "| \"c\"  |        20 |\n");
  EXPECT_EQ(to_string(table, TableStyle::kCsv), "name,t/s\n\"a, b\",1.0 ± 0.1\n\"\"\"c\"\"\",20\n");
}

TEST(Roof, SharesAreTimesAtTheRoof) {
  const Roof roof{.memory_read = 10, .cache_read = 100, .fp32 = 50, .int8 = 200};
  const Work work{.bytes = 5e9, .int8_ops = 100e9, .fp32_ops = 25e9};
  // At the roofs: half a second of reading, half a second each of int8 and of fp32.
  const RoofShare share = share_of_roof(work, 2, roof);
  EXPECT_DOUBLE_EQ(share.memory, 0.25);
  EXPECT_DOUBLE_EQ(share.arithmetic, 0.5);
  EXPECT_DOUBLE_EQ(share.nearest(), 0.5);
  EXPECT_DOUBLE_EQ(share_of_roof(work, 2, roof, true).memory, 0.025);
}

TEST(ModelTest, IsNamedAsLlamaBenchDoes) {
  EXPECT_EQ((ModelTest{.prompt = 512}).name(), "pp512");
  EXPECT_EQ((ModelTest{.generate = 128}).name(), "tg128");
  EXPECT_EQ((ModelTest{.prompt = 512, .depth = 4096}).name(), "pp512 @ d4096");
  EXPECT_EQ(context_of({{.prompt = 512}, {.generate = 128, .depth = 4096}}), 4224);
}

/// A mixture of experts with one of everything, small enough to count by hand.
SyntheticModel tiny_moe(Format format) {
  ModelShape shape = tiny_shape("qwen3moe");
  shape.tie_word_embeddings = false;
  ThreadPool pool(2);
  return std::move(SyntheticModel::create({.shape = shape, .format = format}, pool)).value();
}
Model load(const SyntheticModel& model) {
  return std::move(load_model(*model.checkpoint())).value();
}

std::vector<float> logits_of(Model model, Backend& backend) {
  auto engine = std::move(Engine::create(std::move(model), backend, {.context = 64})).value();
  Session session = engine->new_session();
  const std::vector<TokenId> tokens = {1, 2, 3, 250};
  EXPECT_TRUE(engine->prefill(session, tokens).ok());
  const std::span<const float> logits = engine->logits();
  return {logits.begin(), logits.end()};
}

/// The same from memory, after a backend has packed the weights and let go of them, and from the file; and
/// numbers of the size that a trained model's have.
TEST(SyntheticModels, GiveTheSameLogitsFromMemoryAndFile) {
  const test::TempDir folder;
  const SyntheticModel synthetic = tiny_moe(Format::kQ4_K);
  const std::string path = folder.file("tiny.gguf");
  ASSERT_TRUE(synthetic.write(path).ok());
  const Machine machine = detect_machine();
  ThreadPool pool(2);
  const auto reference = make_reference_backend(pool, machine);
  const auto cpu = std::move(make_cpu_backend(pool, machine, cpu_isas(machine).front())).value();

  const std::vector<float> expected =
      logits_of(std::move(load_model(*Checkpoint::open(path))).value(), *reference);
  double squares = 0;
  for (const float logit : expected) squares += static_cast<double>(logit) * logit;
  EXPECT_NEAR(std::sqrt(squares / 300), 0.02 * std::sqrt(256.0), 0.1);
  EXPECT_EQ(logits_of(load(synthetic), *cpu), expected);
  EXPECT_EQ(logits_of(load(synthetic), *reference), expected);
}

TEST(ModelWork, CountsMultiplyAddsOfPickedExperts) {
  const Model model = load(tiny_moe(Format::kQ8_0));
  const double attention = 256 * 256 + 2 * 128 * 256 + 256 * 256;  // q, k and v, o
  const double experts = 2 * 3 * 256 * 256;
  const double router = 8 * 256;
  const double head = 300 * 256;
  const Work work = prefill_work(model.plan, 10);
  EXPECT_DOUBLE_EQ(work.int8_ops, 2 * (10 * 2 * (attention + experts) + head));
  EXPECT_DOUBLE_EQ(work.fp32_ops, 2 * 10 * 2 * router);
  const Work floats = prefill_work(load(tiny_moe(Format::kBF16)).plan, 10);
  EXPECT_DOUBLE_EQ(floats.int8_ops, 0);
  EXPECT_DOUBLE_EQ(floats.fp32_ops, work.int8_ops + work.fp32_ops);
}

TEST(ModelWork, DecodingReadsWeightsKeysAndValues) {
  const Model model = load(tiny_moe(Format::kBF16));
  const double kv_of_a_position = 2 * 2 * 2 * 64 * 2;  // layers, keys and values, heads, dimensions, bytes
  EXPECT_DOUBLE_EQ(decode_bytes(model.plan, KvType::kF16, 100) - decode_bytes(model.plan, KvType::kF16, 50),
                   50 * kv_of_a_position);
  EXPECT_DOUBLE_EQ(decode_bytes(model.plan, KvType::kF16, 0),
                   static_cast<double>(bytes_per_token(model.plan)));
}

TEST(MachineBench, MeasuresEverythingOnce) {
  const Machine machine = detect_machine();
  HostInfo host = describe_host(machine);
  EXPECT_GT(host.l2_bytes, 0U);
  host.l2_bytes = 64 << 10;
  const MachineOptions options{.threads = 3, .samples = 2, .cold_bytes = 8 * kMiB};
  std::int64_t steps = 0, announced = 0;
  const auto report = measure_machine(machine, host, options, [&](std::int64_t done, std::int64_t total) {
    EXPECT_EQ(done, ++steps);
    announced = total;
    return true;
  });
  ASSERT_TRUE(report.ok()) << report.error().message();
  EXPECT_EQ(steps, announced);
  // 1, 2 and 3 threads: read, write and copy at 4 numbers of streams, from memory, caches and small pages.
  EXPECT_EQ(report->bandwidth.size(), 3U * 3 * 4 * 3);
  for (const auto& row : report->bandwidth) EXPECT_GT(row.gb_s.median(), 0);
  EXPECT_EQ(report->thread_costs.size(), 3U);
  for (const auto& peak : report->peaks) {
    EXPECT_GT(peak.gop_s.median(), 0) << peak.isa;
    EXPECT_EQ(peak.gop_s.values().size(), 2U);
  }
  EXPECT_EQ(report->peaks.back().isa, "scalar");

  const auto stopped =
      measure_machine(machine, host, options, [](std::int64_t, std::int64_t) { return false; });
  EXPECT_EQ(stopped.error().message(), "interrupted");

  double now = 0;
  steps = 0;
  const auto cut = measure_machine(
      machine, host, options, [&](std::int64_t, std::int64_t) { return ++steps > 0; },
      TimeLimit(3, seconds_by_looks(now)));
  ASSERT_TRUE(cut.ok());
  EXPECT_FALSE(cut->complete);
  EXPECT_EQ(cut->bandwidth.size(), 2U * 4);
  EXPECT_TRUE(cut->thread_costs.empty());
  EXPECT_EQ(steps, announced);
  EXPECT_TRUE(report->complete);
}

/// A loop that claims more operations than it has would beat the CPU's clock.
TEST(Peaks, AreWithinWhatACoreCanDo) {
  ThreadPool pool(1);
  for (const Probes* probes : usable_probes(detect_machine())) {
    EXPECT_LT(measure_peak(probes->fp32_fma, pool, 3).median(), 6 * 2 * 16 * 2 * 1.5) << probes->isa;
    if (probes->int8_dot != nullptr) {
      EXPECT_LT(measure_peak(probes->int8_dot, pool, 3).median(), 6 * 2 * 64 * 2 * 1.5) << probes->isa;
    }
  }
}

TEST(KernelBench, MeasuresEveryFormatHotAndCold) {
  const Machine machine = detect_machine();
  ThreadPool pool(2);
  const auto memory = PagedMemory::create(8 * kMiB, Pages::kHuge, pool);
  ASSERT_TRUE(memory.ok());
  std::vector<KernelCase> cases;
  for (const Format format : kAllFormats)
    for (const bool cold : {true, false}) cases.push_back({format, 70, 512, cold ? 1 : 5, cold});
  int readings = 0;
  const auto read_roof = [&] {
    ++readings;
    return Roof{1, 1, 1, 1};
  };
  const auto results = measure_kernels(
      {*cpu_kernels(machine, cpu_isas(machine).front()), pool, *memory, 4 << 10}, cases, 1, read_roof, kOn);
  ASSERT_TRUE(results.ok()) << results.error().message();
  ASSERT_EQ(results->size(), cases.size());
  EXPECT_EQ(readings, std::ssize(kAllFormats));
  for (const KernelResult& result : *results) {
    EXPECT_EQ(result.rows, result.kernel.cold ? 70 : 64) << format_name(result.kernel.format);
    const double products = result.products_s.median();
    EXPECT_GT(products, 0);
    EXPECT_NEAR(result.gop_s() * 1e9 / products,
                2.0 * 512 * static_cast<double>(result.rows) * static_cast<double>(result.kernel.tokens), 1);
    EXPECT_NEAR(result.gb_s() * 1e9 / products,
                static_cast<double>(result.rows * format_row_bytes(result.kernel.format, 512)), 1);
  }
  const TimeLimit over(-1);
  EXPECT_TRUE(measure_kernels({*cpu_kernels(machine, cpu_isas(machine).front()), pool, *memory, 4 << 10},
                              cases, 1, read_roof, kOn, over)
                  ->empty());
  const KernelCase odd{Format::kQ4_K, 32, 100, 1, true};
  const KernelSetup setup{*cpu_kernels(machine, cpu_isas(machine).front()), pool, *memory, 4 << 10};
  EXPECT_FALSE(measure_kernels(setup, {odd}, 1, read_roof, kOn).ok());
  const KernelCase large{Format::kF32, 4096, 1024, 1, true};
  EXPECT_FALSE(measure_kernels(setup, {large}, 1, read_roof, kOn).ok());
}

TEST(AttentionBench, CountsWhatAStepReadsAndComputes) {
  const AttentionCase decode{{8, 2, 64}, KvType::kF16, 1, 99};
  EXPECT_DOUBLE_EQ(decode.work().bytes,
                   100 * 2 * 64 * 2 * 2);  // positions, KV heads, dimensions, K and V, bytes
  EXPECT_DOUBLE_EQ(decode.work().fp32_ops, 8 * 64 * 100 * 4);
  const AttentionCase prefill{{8, 2, 64}, KvType::kF32, 3, 10};
  EXPECT_DOUBLE_EQ(prefill.work().bytes, 13 * 2 * 64 * 2 * 4);
  EXPECT_DOUBLE_EQ(prefill.work().fp32_ops, 8 * 64 * (11 + 12 + 13) * 4);
}

TEST(AttentionBench, MeasuresDecodeAndPrefill) {
  const Machine machine = detect_machine();
  ThreadPool pool(2);
  const auto memory = PagedMemory::create(8 * kMiB, Pages::kHuge, pool);
  ASSERT_TRUE(memory.ok());
  const auto backend = std::move(make_cpu_backend(pool, machine, cpu_isas(machine).front())).value();
  const AttentionSetup setup{*backend, "x", 2, *memory};
  const std::vector<AttentionCase> cases = {{{4, 2, 64}, KvType::kF16, 1, 300},
                                            {{4, 2, 64}, KvType::kF32, 1, 300},
                                            {{3, 1, 40}, KvType::kF16, 20, 0},
                                            {{4, 4, 32}, KvType::kF32, 20, 200}};
  const auto read_roof = [] { return Roof{1, 1, 1, 1}; };
  const auto results = measure_attention(setup, cases, 2, read_roof, kOn);
  ASSERT_TRUE(results.ok()) << results.error().message();
  ASSERT_EQ(results->size(), cases.size());
  for (const AttentionResult& result : *results) {
    EXPECT_EQ(result.layers_s.values().size(), 2U);
    EXPECT_GT(result.gop_s(), 0);
    EXPECT_NEAR(result.fraction_of_roof, std::max(result.gb_s(), result.gop_s()),
                1e-9 * result.fraction_of_roof);
  }
  const AttentionCase large{{64, 64, 128}, KvType::kF32, 1, 5000};
  EXPECT_FALSE(measure_attention(setup, {large}, 1, read_roof, kOn).ok());
}

TEST(Estimates, GrowWithTheWork) {
  const Roof roof{.memory_read = 10, .cache_read = 100, .fp32 = 50, .int8 = 200};
  const Model model = load(tiny_moe(Format::kQ8_0));
  const auto of_model = [&](const std::vector<ModelTest>& tests, int repetitions) {
    return most_seconds(model.plan, KvType::kF16, tests, repetitions, roof);
  };
  // Two readings of roofs of half a second, and 6 runs of 1000 tokens, each a millisecond and its bytes at 1
  // GB/s.
  const double bytes = decode_bytes(model.plan, KvType::kF16, 1000);
  EXPECT_NEAR(of_model({{.generate = 1000}}, 5), 1 + 6000 * (1e-3 + bytes / 1e9), 1e-6);
  EXPECT_GT(of_model({{.prompt = 512, .depth = 512}}, 5), of_model({{.prompt = 512}}, 5));
  const KernelCase large{Format::kQ4_K, 9728, 2560, 512, true}, small{Format::kQ4_K, 256, 256, 1, false};
  EXPECT_GT(most_seconds({large}, 5, roof, 1e9), most_seconds({small}, 5, roof, 1e9) + 1);
  EXPECT_NEAR(most_seconds({small, small, small}, 5, roof, 1e9),
              0.5 + 3 * (most_seconds({small}, 5, roof, 1e9) - 0.5), 1e-9);
  EXPECT_GT(most_seconds(MachineOptions{8, 5, 1 << 30}), most_seconds(MachineOptions{1, 5, 1 << 30}));
}

TEST(Html, TextMeansItself) {
  EXPECT_EQ(html_escape("<b>\"a\" & 'c'</b>"), "&lt;b&gt;&quot;a&quot; &amp; &#39;c&#39;&lt;/b&gt;");
  const std::string table = html_table({"<title>", {{"<x>", false}, {"n"}}, {{"a&b", "1"}}});
  EXPECT_NE(table.find("<caption>&lt;title&gt;</caption>"), std::string::npos) << table;
  EXPECT_NE(table.find("<td>a&amp;b</td><td class=\"number\">1</td>"), std::string::npos) << table;
  EXPECT_EQ(table.find("<details>"), std::string::npos);
}

TEST(ModelBench, RunsEveryTestAtItsDepth) {
  const std::vector<ModelTest> tests = {
      {.prompt = 20}, {.generate = 3}, {.prompt = 5, .depth = 40}, {.generate = 2, .depth = 40}};
  for (const char* model : {"llama", "qwen3_moe", "gemma3"}) {
    SCOPED_TRACE(model);
    EngineOptions options;
    options.context = context_of(tests);
    options.max_batch_tokens = 16;
    const test::LoadedEngine loaded = test::load_engine(test::golden_folder(model), 2, options);
    int readings = 0;
    const auto read_roof = [&] {
      ++readings;
      return Roof{1.0 + readings % 2, 1, 1, 1};
    };
    std::int64_t last = 0, total = 0;
    const auto results = measure_model(*loaded.engine, {.model = model}, tests, 3, read_roof,
                                       [&](std::int64_t done, std::int64_t all) {
                                         EXPECT_GE(done, last);
                                         last = done;
                                         total = all;
                                         return true;
                                       });
    ASSERT_TRUE(results.ok()) << results.error().message();
    EXPECT_EQ(last, total);
    ASSERT_EQ(results->size(), tests.size());
    EXPECT_EQ(readings, 8);
    for (std::size_t i = 0; i < tests.size(); ++i) {
      const ModelResult& result = (*results)[i];
      EXPECT_EQ(result.test.name(), tests[i].name());
      EXPECT_EQ(result.tok_s.values().size(), 3U);
      EXPECT_GT(result.tok_s.median(), 0);
      EXPECT_GT(result.fraction_of_roof, 0);
      EXPECT_DOUBLE_EQ(result.roof.memory_read, 1.5);
      EXPECT_DOUBLE_EQ(result.roof_change, -0.5);
    }
    const ModelResult& decode = (*results)[1];
    EXPECT_NEAR(decode.fraction_of_roof, decode.bytes_per_token * decode.tok_s.median() / 1.5e9, 1e-9);

    const auto stopped = measure_model(*loaded.engine, {}, tests, 1, read_roof,
                                       [](std::int64_t, std::int64_t) { return false; });
    EXPECT_EQ(stopped.error().message(), "interrupted");

    // The clock is looked at after each step: 2 of a prompt, for the 4 runs of the first test, then 3 for
    // each of the second test's, of which the time ends the third.
    double now = 0;
    const auto cut = measure_model(*loaded.engine, {}, tests, 3, read_roof, kOn,
                                   TimeLimit(4 * 2 + 2 * 3 + 2, seconds_by_looks(now)));
    ASSERT_TRUE(cut.ok()) << cut.error().message();
    ASSERT_EQ(cut->size(), 2U);
    EXPECT_EQ((*cut)[0].tok_s.values().size(), 3U);
    EXPECT_EQ((*cut)[1].tok_s.values().size(), 1U);
    EXPECT_EQ((*cut)[1].logits_hash, decode.logits_hash);
    double later = 0;
    EXPECT_TRUE(
        measure_model(*loaded.engine, {}, tests, 3, read_roof, kOn, TimeLimit(1, seconds_by_looks(later)))
            ->empty());
  }
}

}  // namespace
}  // namespace eider::bench
