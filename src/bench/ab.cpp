#include "bench/ab.h"

#include <algorithm>

#include "bench/samples.h"

namespace eider::bench {
namespace {

/// Of the time that pairs have; in less a moment's pause would end them.
constexpr double kLeastSeconds = 2;

std::string names_of(const std::vector<Figure>& figures) {
  std::string names;
  for (const Figure& figure : figures)
    names += (names.empty() ? "" : ", ") + (figure.test.empty() ? std::string("a speed") : figure.test);
  return names;
}

/// A side that names no tests is taken at its word.
bool same_tests(const std::vector<Figure>& a, const std::vector<Figure>& b) {
  return std::ranges::equal(a, b, [](const Figure& x, const Figure& y) {
    return x.test.empty() || y.test.empty() || x.test == y.test;
  });
}

std::string joined_name(const std::string& a, const std::string& b) {
  if (a.empty() || b.empty() || a == b) return a.empty() ? b : a;
  return a + " / " + b;
}

AbTest summarize(const std::vector<AbPair>& pairs, std::size_t index) {
  const Figure& first = pairs.front().a[index];
  AbTest test{.model = joined_name(first.model, pairs.front().b[index].model),
              .test = joined_name(first.test, pairs.front().b[index].test)};
  Samples a_rates, b_rates;
  bool known = true, same = true;
  for (const AbPair& pair : pairs) {
    const Figure &a = pair.a[index], &b = pair.b[index];
    known = known && !a.answer.empty() && !b.answer.empty();
    same = same && a.answer == first.answer && b.answer == first.answer;
    if (pair.dropped()) continue;
    a_rates.add(a.tok_s);
    b_rates.add(b.tok_s);
    test.ratios.push_back(b.tok_s / a.tok_s);
  }
  if (known) test.same_answer = same;
  test.a_tok_s = a_rates.median();
  test.b_tok_s = b_rates.median();
  test.ratio = median_interval(test.ratios);
  return test;
}

/// Adds a pair that did the same work on both sides, and as those before it.
Status add_pair(Result<AbPair> run, std::vector<AbPair>& pairs) {
  EIDER_TRY(AbPair pair, std::move(run));
  if (!same_tests(pair.a, pair.b))
    return error("A measured {}, but B measured {}: both must do the same work", names_of(pair.a),
                 names_of(pair.b));
  if (!pairs.empty() && !same_tests(pairs.front().a, pair.a))
    return error("A measured {}, but {} before: it must do the same work each time", names_of(pair.a),
                 names_of(pairs.front().a));
  pairs.push_back(std::move(pair));
  return {};
}

}  // namespace

double AbPair::roof_change() const {
  const auto [least, most] = std::minmax({roof_before, roof_between, roof_after});
  return most / least - 1;
}

int AbReport::dropped() const {
  return static_cast<int>(std::ranges::count_if(pairs, &AbPair::dropped));
}

Result<AbReport> measure_pairs(const SideRun& a, const SideRun& b, const AbOptions& options) {
  const double start = options.now();
  AbReport report;
  TimeLimit limit;
  std::int64_t kept = 0;
  double roof = options.read_roof();
  const auto run_pair = [&](bool a_first) -> Result<AbPair> {
    AbPair pair{.roof_before = roof};
    for (const bool second : {false, true}) {
      const bool is_a = a_first != second;
      EIDER_TRY((is_a ? pair.a : pair.b), (is_a ? a : b)(limit).context(is_a ? "A" : "B"));
      roof = options.read_roof();
      (second ? pair.roof_after : pair.roof_between) = roof;
      if (second && !pair.dropped()) ++kept;
      if (!options.progress(2 * kept + (second ? 0 : 1), 2 * static_cast<std::int64_t>(options.pairs)))
        return error("interrupted");
    }
    return pair;
  };
  for (int i = 0; kept < options.pairs && i < 2 * options.pairs; ++i) {
    Result<AbPair> pair = run_pair(i % 2 == 0);
    report.out_of_time = limit.over();
    if (!pair.ok() && report.out_of_time) break;
    EIDER_TRY_STATUS(add_pair(std::move(pair), report.pairs));
    if (report.out_of_time) break;
    if (i > 0) continue;
    const double most = std::max(kLeastSeconds, 2 * options.pairs * (options.now() - start));
    limit = TimeLimit(start + most - options.now(), options.now);
    if (options.tell_time) options.tell_time(most);
  }
  report.out_of_time = report.out_of_time && kept < options.pairs;
  for (std::size_t test = 0; test < report.pairs.front().a.size(); ++test)
    report.tests.push_back(summarize(report.pairs, test));
  return report;
}

}  // namespace eider::bench
