// Intervals, A/B pairs and comparisons of results: figures by hand, from binomial tables and from made-up
// sides.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/random.h"
#include "bench/ab.h"
#include "bench/ab_report.h"
#include "bench/compare.h"
#include "bench/median_interval.h"
#include "bench/side_output.h"
#include "text/json_text.h"

namespace eider::bench {
namespace {

using nlohmann::ordered_json;

const Progress kGoOn = [](std::int64_t, std::int64_t) { return true; };

/// Counts of samples left out at either end and coverages, from exact binomial sums (Python's math.comb).
TEST(MedianInterval, IsOfTheOrderStatisticsThatTablesGive) {
  const struct {
    int count;
    int cut;
    double coverage;
  } cases[] = {{1, 0, 0},
               {2, 0, 0.5},
               {5, 0, 0.9375},
               {6, 0, 0.96875},
               {8, 0, 0.9921875},
               {9, 1, 0.9609375},
               {10, 1, 0.978515625},
               {12, 2, 0.96142578125},
               {15, 3, 0.96484375},
               {20, 5, 0.9586105346679688},
               {100, 39, 0.9647997997822952}};
  for (const auto& [count, cut, coverage] : cases) {
    std::vector<double> samples;
    for (int i = 0; i < count; ++i) samples.push_back(i);
    std::ranges::reverse(samples);
    const MedianInterval interval = median_interval(samples);
    EXPECT_EQ(interval.median, (count - 1) / 2.0) << count;
    EXPECT_EQ(interval.low, cut) << count;
    EXPECT_EQ(interval.high, count - 1 - cut) << count;
    EXPECT_NEAR(interval.coverage, coverage, 1e-9) << count;
  }
  EXPECT_EQ(median_interval({}).coverage, 0);
  EXPECT_EQ(median_interval({1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, 0.99).low, 1);
}

/// As often as it says: of skewed samples (the exponential distribution, whose median is ln 2).
TEST(MedianInterval, CoversTheMedianAsOftenAsItSays) {
  constexpr int kTrials = 4000;
  int covered = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    std::vector<double> samples;
    for (int i = 0; i < 10; ++i)
      samples.push_back(
          -std::log(1 - uniform_draw(5, static_cast<std::uint64_t>(trial), static_cast<std::uint64_t>(i))));
    if (median_interval(samples).contains(std::log(2.0))) ++covered;
  }
  EXPECT_NEAR(covered / double{kTrials}, 0.9785, 0.01);
}

std::vector<Figure> parsed(const std::string& out, const std::string& err = "") {
  Result<std::vector<Figure>> figures = parse_side_output(out, err);
  EXPECT_TRUE(figures.ok()) << out;
  return figures.ok() ? *figures : std::vector<Figure>{};
}

TEST(SideOutput, FindsSpeedsInJson) {
  const auto bench = parsed(
      R"({"machine": {}, "models": [{"model": "m", "test": "pp8", "tok_s": 12.5, "logits_hash": "ab"},
                                    {"model": "m", "test": "tg2", "tok_s": 3, "logits_hash": "cd"}]})");
  ASSERT_EQ(bench.size(), 2U);
  EXPECT_EQ(bench[0].test, "pp8");
  EXPECT_EQ(bench[0].tok_s, 12.5);
  EXPECT_EQ(bench[1].answer, "cd");
  const auto llama = parsed(
      R"([{"model_filename": "x/y.gguf", "n_prompt": 0, "n_gen": 16, "n_depth": 64, "avg_ts": 7.25},
          {"n_prompt": 512, "n_gen": 0, "avg_ts": 8}])");
  ASSERT_EQ(llama.size(), 2U);
  EXPECT_EQ(llama[0].test, "tg16 @ d64");
  EXPECT_EQ(llama[0].model, "y.gguf");
  EXPECT_EQ(llama[1].test, "pp512");
  EXPECT_EQ(llama[1].answer, "");
  const auto run = parsed(R"({"text": "hi", "logits_hash": "ef", "decode_tok_s": 4.5})");
  ASSERT_EQ(run.size(), 1U);
  EXPECT_EQ(run[0].answer, "ef");
  EXPECT_EQ(run[0].test, "");
}

TEST(SideOutput, FindsTheLastRateInText) {
  EXPECT_EQ(parsed("prompt 8 tok/s\nanswer: 12.5 tok/s, 3 ms").front().tok_s, 12.5);
  EXPECT_EQ(parsed("eval time (  80.0 ms,    12.50 tokens per second)").front().tok_s, 12.5);
  EXPECT_EQ(parsed("4 t/s then 5 tokens/s").front().tok_s, 5);
  EXPECT_EQ(parsed("7 tok/s (in tok/s)").front().tok_s, 7);
  EXPECT_EQ(parsed("7 tok/s").front().answer, "");
  const Figure of_err = parsed("The answer", "answer: 9 tok/s").front();
  EXPECT_EQ(of_err.tok_s, 9);
  EXPECT_EQ(of_err.answer, "The answer");
  for (const char* text : {"", "tok/s", "x tok/s", "0 tok/s", "1.2.3 tok/s", "[]", "{}", R"({"tok_s": -1})",
                           R"({"tok_s": "5"})", R"({"models": 5})", R"([[1]])"})
    EXPECT_FALSE(parse_side_output(text, "").ok()) << text;
}

/// A side whose runs give `rates` one after the other.
SideRun side_of(std::vector<double> rates, std::string answer = "same") {
  return [rates = std::move(rates), answer = std::move(answer),
          next = std::size_t{0}](const TimeLimit&) mutable {
    return Result<std::vector<Figure>>({{"m", "tg8", rates[next++ % rates.size()], answer}});
  };
}
double steady_roof() {
  return 10;
}
AbOptions steadily(int pairs) {
  return {.pairs = pairs, .read_roof = steady_roof, .progress = kGoOn, .now = [] { return 0.0; }};
}

TEST(Pairs, RatiosAreOfNeighboursAndBeginInTurn) {
  std::string order;
  const auto noted = [&](char name, SideRun run) -> SideRun {
    return [&order, name, run = std::move(run)](const TimeLimit& limit) {
      order += name;
      return run(limit);
    };
  };
  std::int64_t last = 0;
  AbOptions options = steadily(6);
  options.progress = [&](std::int64_t done, std::int64_t total) {
    EXPECT_EQ(done, ++last);
    EXPECT_EQ(total, 12);
    return true;
  };
  const auto report = measure_pairs(noted('a', side_of({10, 20, 40, 10, 10, 10})),
                                    noted('b', side_of({11, 24, 52, 9, 12, 13})), options);
  ASSERT_TRUE(report.ok()) << report.error().message();
  EXPECT_EQ(order, "abbaabbaabba");
  ASSERT_EQ(report->tests.size(), 1U);
  const AbTest& test = report->tests.front();
  const std::vector<double> expected = {1.1, 1.2, 1.3, 0.9, 1.2, 1.3};
  ASSERT_EQ(test.ratios.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(test.ratios[i], expected[i], 1e-12);
  EXPECT_NEAR(test.ratio.median, 1.2, 1e-12);
  EXPECT_NEAR(test.ratio.low, 0.9, 1e-12);
  EXPECT_NEAR(test.ratio.high, 1.3, 1e-12);
  EXPECT_FALSE(test.differs());
  EXPECT_EQ(test.same_answer, true);
  EXPECT_EQ(report->dropped(), 0);
  EXPECT_EQ(ab_table({"x", "y"}, *report).rows.front().back(), "no difference seen");
}

TEST(Pairs, AreDroppedWhereTheRoofMoved) {
  // Readings 0 to 2 are of the first pair, 2 to 4 of the second, 4 to 6 of the third.
  const std::vector<double> readings = {10, 10.5, 10.9, 10.9, 10.9, 9.5, 10.9};
  std::size_t next = 0;
  AbOptions options = steadily(6);
  options.read_roof = [&] { return readings[std::min(next++, readings.size() - 1)]; };
  const auto report = measure_pairs(side_of({10}), side_of({20, 22, 1000, 24, 26, 28, 30}, "other"), options);
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->dropped(), 1);
  const AbTest& test = report->tests.front();
  EXPECT_EQ(test.ratios, (std::vector<double>{2, 2.2, 2.4, 2.6, 2.8, 3}));
  EXPECT_EQ(test.a_tok_s, 10);
  EXPECT_TRUE(test.differs());
  EXPECT_EQ(test.same_answer, false);
  const ordered_json json = ab_json({"x", "y"}, *report);
  EXPECT_EQ(json["dropped"], 1);
  EXPECT_EQ(json["roof_gb_s"].size(), 7U);  // the dropped pair was run again
  EXPECT_EQ(json["tests"][0]["ratio"], 2.5);
  EXPECT_EQ(json["tests"][0]["low"], 2);
  EXPECT_EQ(json["tests"][0]["coverage"], 0.96875);

  double roof = 1;
  options.pairs = 2;
  options.read_roof = [&] { return roof *= 2; };
  const auto none = measure_pairs(side_of({10}), side_of({10}), options);
  ASSERT_TRUE(none.ok());
  EXPECT_EQ(none->dropped(), 4);
  EXPECT_EQ(ab_table({"x", "y"}, *none).rows.front().back(), "no pair is left");
}

TEST(Pairs, TooFewTellNothing) {
  const auto report = measure_pairs(side_of({10}), side_of({20}), steadily(5));
  ASSERT_TRUE(report.ok());
  EXPECT_TRUE(ab_json({"x", "y"}, *report)["tests"][0]["low"].is_null());
  EXPECT_FALSE(report->tests.front().differs());
  EXPECT_EQ(ab_table({"x", "y"}, *report).rows.front().back(), "too few pairs");
}

TEST(Pairs, FailuresSayWhichSide) {
  const SideRun failing = [](const TimeLimit&) {
    return Result<std::vector<Figure>>(error("no such model"));
  };
  EXPECT_EQ(measure_pairs(side_of({1}), failing, steadily(2)).error().message(), "B: no such model");
  const SideRun other = [](const TimeLimit&) { return Result<std::vector<Figure>>({{"m", "pp8", 1, ""}}); };
  const std::string message = measure_pairs(side_of({1}), other, steadily(2)).error().message();
  EXPECT_NE(message.find("A measured tg8, but B measured pp8"), std::string::npos) << message;
  AbOptions options = steadily(2);
  options.progress = [](std::int64_t, std::int64_t) { return false; };
  EXPECT_EQ(measure_pairs(side_of({1}), side_of({1}), options).error().message(), "interrupted");
}

/// A pair takes 2 s at first and 18 s from the third on, when something else has begun to run: of 6 pairs,
/// which were said to take 24 s at most, the third ends at 22 s, and the fourth would at 40 s.
TEST(Pairs, EndWhenTheyWereSaidTo) {
  double now = 100, told = 0;
  int runs = 0;
  const SideRun side = [&](const TimeLimit& limit) -> Result<std::vector<Figure>> {
    const double seconds = ++runs <= 4 ? 1 : 9;
    for (double at = 0; at < seconds; at += 0.5) {
      if (limit.over()) return error("its time is over");
      now += 0.5;
    }
    return std::vector<Figure>{{"m", "tg8", 10, ""}};
  };
  AbOptions options = steadily(6);
  options.now = [&] { return now; };
  options.tell_time = [&](double seconds) { told += seconds; };
  const auto report = measure_pairs(side, side, options);
  ASSERT_TRUE(report.ok()) << report.error().message();
  EXPECT_EQ(told, 24);
  EXPECT_EQ(now, 124);
  EXPECT_TRUE(report->out_of_time);
  EXPECT_EQ(report->pairs.size(), 3U);
  EXPECT_EQ(report->tests.front().ratios.size(), 3U);

  runs = -100;  // never slow
  now = 0;
  const auto whole = measure_pairs(side, side, options);
  ASSERT_TRUE(whole.ok());
  EXPECT_FALSE(whole->out_of_time);
  EXPECT_EQ(whole->pairs.size(), 6U);
}

ordered_json result_of(const std::vector<double>& samples, double roof = 20, const char* cpu = "C") {
  return {{"machine", {{"cpu", cpu}}},
          {"models",
           {{{"model", "m"},
             {"test", "tg8"},
             {"backend", "cpu"},
             {"threads", 2},
             {"n_ubatch", 512},
             {"samples", samples},
             {"logits_hash", "ab"},
             {"roof", {{"memory_read_gb_s", roof}}}}}}};
}

TEST(Compare, TellsChangesBeyondNoise) {
  const auto faster = compare_results(result_of({10, 11, 12, 10.5}), result_of({13, 14, 13.5, 15}));
  ASSERT_TRUE(faster.ok()) << faster.error().message();
  ASSERT_EQ(faster->rows.size(), 1U);
  const ComparedRow& row = faster->rows.front();
  EXPECT_EQ(row.name, "m tg8 cpu threads 2 n_ubatch 512");
  EXPECT_DOUBLE_EQ(row.ratio(), 13.75 / 10.75);
  EXPECT_DOUBLE_EQ(row.low, 13.0 / 12);
  EXPECT_DOUBLE_EQ(row.high, 15.0 / 10);
  EXPECT_TRUE(row.beyond_noise());
  EXPECT_EQ(row.same_answer, true);
  EXPECT_TRUE(faster->warnings.empty());
  EXPECT_EQ(comparison_table(*faster).rows.front().back(), "faster");

  EXPECT_FALSE(
      compare_results(result_of({10, 11, 12, 13}), result_of({12, 14, 13, 15}))->rows[0].beyond_noise());
  const auto few = compare_results(result_of({10, 11}), result_of({20, 21}));
  EXPECT_EQ(comparison_table(*few).rows.front().back(), "too few samples");
}

TEST(Compare, WarnsWhereMachinesDiffer) {
  const auto moved = compare_results(result_of({1}, 20), result_of({1}, 30, "D"));
  ASSERT_TRUE(moved.ok());
  ASSERT_EQ(moved->warnings.size(), 2U);
  EXPECT_NE(moved->warnings[0].find("cpu"), std::string::npos);
  EXPECT_NE(moved->warnings[1].find("1 of 1 rows"), std::string::npos);
}

TEST(Compare, MatchesRowsByName) {
  ordered_json before = result_of({1}), after = result_of({2});
  after["models"].push_back(after["models"][0]);
  after["models"][1]["threads"] = 1;
  before["kernels"] = ordered_json::array();
  for (const int tokens : {1, 8})
    before["kernels"].push_back({{"kernel", "gemv"},
                                 {"format", "Q4_K"},
                                 {"rows", 1},
                                 {"columns", 2},
                                 {"tokens", tokens},
                                 {"isa", "avx2"},
                                 {"threads", 2},
                                 {"cache", "cold"},
                                 {"products_s", {1, 2}}});
  const auto compared = compare_results(before, after);
  ASSERT_TRUE(compared.ok()) << compared.error().message();
  EXPECT_EQ(compared->rows.size(), 1U);
  EXPECT_EQ(compared->only_before, 2);
  EXPECT_EQ(compared->only_after, 1);
}

TEST(Compare, RefusesWhatIsNoResult) {
  const ordered_json good = result_of({1});
  for (const char* bad :
       {"[]", "5", "{}", R"({"machine": 1})", R"({"machine": {}, "models": 5})",
        R"({"machine": {}, "models": [5]})", R"({"machine": {}, "models": [{"model": "m"}]})"})
    EXPECT_FALSE(compare_results(good, parse_ordered_json(bad)).ok()) << bad;
  ordered_json no_samples = good;
  no_samples["models"][0]["samples"] = {"x", 0, -1};
  EXPECT_FALSE(compare_results(no_samples, good).ok());
}

}  // namespace
}  // namespace eider::bench
