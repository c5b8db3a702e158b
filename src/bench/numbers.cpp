#include "bench/numbers.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

namespace eider::bench {

std::string number(double value) {
  return fmt::format("{:.{}f}", value, value >= 100 ? 0 : value >= 10 ? 1 : 2);
}

std::string percent(double share) {
  return std::isfinite(share) ? fmt::format("{:.0f} %", 100 * share) : "-";
}

double rounded(double value) {
  const std::string text = fmt::format("{:.5g}", value);
  double short_value = value;
  std::from_chars(text.data(), text.data() + text.size(), short_value);
  return short_value;
}

nlohmann::ordered_json rounded_list(const std::vector<double>& values) {
  auto list = nlohmann::ordered_json::array();
  for (const double value : values) list.push_back(rounded(value));
  return list;
}

}  // namespace eider::bench
