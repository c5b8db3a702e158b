// Settings to test where the full product is too much: rows in which every pair of levels of any two factors
// stands somewhere.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace eider::test {

/// `levels`: of each factor. A row has one level (0..levels[f] - 1) for each factor f.
inline std::vector<std::vector<int>> full_product(const std::vector<int>& levels) {
  std::vector<std::vector<int>> rows = {{}};
  for (const int count : levels) {
    std::vector<std::vector<int>> longer;
    for (const std::vector<int>& row : rows)
      for (int level = 0; level < count; ++level) {
        longer.push_back(row);
        longer.back().push_back(level);
      }
    rows = std::move(longer);
  }
  return rows;
}

/// Greedy: each row is the one of the full product with the most pairs that no earlier row has.
inline std::vector<std::vector<int>> covering_array(const std::vector<int>& levels) {
  const std::size_t factors = levels.size();
  std::size_t most_levels = 0, pairs_left = 0;
  for (std::size_t f = 0; f < factors; ++f) {
    most_levels = std::max(most_levels, static_cast<std::size_t>(levels[f]));
    for (std::size_t g = 0; g < f; ++g) pairs_left += static_cast<std::size_t>(levels[f] * levels[g]);
  }
  std::vector<bool> covered(factors * factors * most_levels * most_levels);
  const auto pair = [&](const std::vector<int>& row, std::size_t f, std::size_t g) {
    return ((f * factors + g) * most_levels + static_cast<std::size_t>(row[f])) * most_levels +
           static_cast<std::size_t>(row[g]);
  };
  const auto new_pairs = [&](const std::vector<int>& row) {
    std::size_t count = 0;
    for (std::size_t f = 0; f < factors; ++f)
      for (std::size_t g = 0; g < f; ++g) count += covered[pair(row, f, g)] ? 0 : 1;
    return count;
  };
  const std::vector<std::vector<int>> candidates = full_product(levels);
  std::vector<std::vector<int>> rows;
  while (pairs_left > 0) {
    const std::vector<int>* best = &candidates[0];
    std::size_t best_count = 0;
    for (const std::vector<int>& row : candidates)
      if (const std::size_t count = new_pairs(row); count > best_count) {
        best = &row;
        best_count = count;
      }
    for (std::size_t f = 0; f < factors; ++f)
      for (std::size_t g = 0; g < f; ++g) covered[pair(*best, f, g)] = true;
    pairs_left -= best_count;
    rows.push_back(*best);
  }
  return rows;
}

}  // namespace eider::test
