// Compare: two results of `eider bench --json`, an earlier and a later one, row by row.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "bench/table.h"

namespace eider::bench {

/// A figure that both results have. Rates: larger is faster.
struct ComparedRow {
  std::string section;  ///< "model", "kernel", "attention", "bandwidth", "peak"
  std::string name;     ///< what tells it from the others of its section
  double before = 0, after = 0;
  double low = 0, high = 0;         ///< of after / before, by the intervals of both medians
  bool enough = false;              ///< samples on both sides to say more than the ratio
  std::optional<double> roof;       ///< the later read roof / the earlier, where both were measured beside it
  std::optional<bool> same_answer;  ///< whether logits' hashes are equal, where there are any

  double ratio() const { return after / before; }
  /// Whether the intervals of the two medians do not overlap.
  bool beyond_noise() const { return enough && (low > 1 || high < 1); }
};

struct Comparison {
  std::vector<ComparedRow> rows;
  int only_before = 0, only_after = 0;  ///< rows that the other result does not have
  std::vector<std::string> warnings;    ///< where the machine or its roofs are not the same
};

/// Fails where one of them is not such a result, or has a row that is not as `eider bench` writes it.
Result<Comparison> compare_results(const nlohmann::ordered_json& before, const nlohmann::ordered_json& after);

Table comparison_table(const Comparison& comparison);
nlohmann::ordered_json comparison_json(const Comparison& comparison);

}  // namespace eider::bench
