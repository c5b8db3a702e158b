#include "runtime/stop_strings.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace eider {

std::size_t tail_that_begins(std::string_view text, std::string_view word) {
  std::size_t length = std::min(word.size() - 1, text.size());
  while (!text.ends_with(word.substr(0, length))) --length;  // ends at 0: every text ends with nothing
  return length;
}

StopStrings::StopStrings(std::vector<std::string> stops) : stops_(std::move(stops)) {
  for (const std::string& stop : stops_) EIDER_CHECK(!stop.empty());
}

std::string StopStrings::push(std::string_view text) {
  if (found()) return {};
  held_ += text;

  // Complete stop strings: the smallest (end, begin).
  std::pair<std::size_t, std::size_t> first{std::string::npos, 0};
  for (const std::string& stop : stops_) {
    const std::size_t begin = held_.find(stop);
    if (begin != std::string::npos) first = std::min(first, {begin + stop.size(), begin});
  }
  if (first.first != std::string::npos) {
    found_ = held_.substr(first.second, first.first - first.second);
    held_.resize(first.second);
    return std::exchange(held_, {});
  }

  // The longest tail that begins a stop string.
  std::size_t tail = 0;
  for (const std::string& stop : stops_) tail = std::max(tail, tail_that_begins(held_, stop));
  std::string certain = held_.substr(0, held_.size() - tail);
  held_.erase(0, certain.size());
  return certain;
}

std::string StopStrings::finish() {
  return std::exchange(held_, {});
}

}  // namespace eider
