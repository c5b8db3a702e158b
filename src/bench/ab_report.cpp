#include "bench/ab_report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "bench/numbers.h"

namespace eider::bench {
namespace {

using nlohmann::ordered_json;

std::string verdict(const AbTest& test) {
  if (test.ratios.empty()) return "no pair is left";
  if (!test.enough()) return "too few pairs";
  if (!test.differs()) return "no difference seen";
  return test.ratio.median > 1 ? "B is faster" : "B is slower";
}

const char* answer_word(const std::optional<bool>& same_answer) {
  if (!same_answer) return "not told";
  return *same_answer ? "equal" : "differ";
}

}  // namespace

Table ab_table(const AbSides& sides, const AbReport& report) {
  Table table{fmt::format("A: {}\nB: {}", sides.a, sides.b),
              {{"model", false},
               {"test"},
               {"A t/s"},
               {"B t/s"},
               {"B / A"},
               {"interval"},
               {"coverage"},
               {"pairs"},
               {"dropped"},
               {"answers", false},
               {"verdict", false}},
              {}};
  for (const AbTest& test : report.tests) {
    const bool left = !test.ratios.empty();
    const auto or_dash = [](bool known, const std::string& text) { return known ? text : std::string("-"); };
    table.rows.push_back(
        {test.model, test.test, or_dash(left, fmt::format("{:.2f}", test.a_tok_s)),
         or_dash(left, fmt::format("{:.2f}", test.b_tok_s)),
         or_dash(left, fmt::format("{:.3f}", test.ratio.median)),
         or_dash(test.enough(), fmt::format("{:.3f} to {:.3f}", test.ratio.low, test.ratio.high)),
         or_dash(test.enough(), fmt::format("{:.1f} %", 100 * test.ratio.coverage)),
         std::to_string(test.ratios.size()), std::to_string(report.dropped()), answer_word(test.same_answer),
         verdict(test)});
  }
  return table;
}

ordered_json ab_json(const AbSides& sides, const AbReport& report) {
  ordered_json json = {{"a", sides.a},
                       {"b", sides.b},
                       {"pairs", report.pairs.size()},
                       {"dropped", report.dropped()},
                       {"roof_gb_s", ordered_json::array()},
                       {"tests", ordered_json::array()}};
  for (const AbPair& pair : report.pairs)
    json["roof_gb_s"].push_back(rounded_list({pair.roof_before, pair.roof_between, pair.roof_after}));
  for (const AbTest& test : report.tests) {
    ordered_json entry = {{"model", test.model},
                          {"test", test.test},
                          {"a_tok_s", rounded(test.a_tok_s)},
                          {"b_tok_s", rounded(test.b_tok_s)},
                          {"ratio", nullptr},
                          {"low", nullptr},
                          {"high", nullptr},
                          {"coverage", nullptr},
                          {"ratios", rounded_list(test.ratios)},
                          {"differs", test.differs()},
                          {"same_answer", nullptr}};
    if (!test.ratios.empty()) entry["ratio"] = rounded(test.ratio.median);
    if (test.enough()) {
      entry["low"] = rounded(test.ratio.low);
      entry["high"] = rounded(test.ratio.high);
      entry["coverage"] = rounded(test.ratio.coverage);
    }
    if (test.same_answer) entry["same_answer"] = *test.same_answer;
    json["tests"].push_back(std::move(entry));
  }
  return json;
}

}  // namespace eider::bench
