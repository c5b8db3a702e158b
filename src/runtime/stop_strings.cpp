#include "runtime/stop_strings.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace eider {

StopStrings::StopStrings(std::vector<std::string> stops) : stops_(std::move(stops)) {
  for (const std::string& stop : stops_) EIDER_CHECK(!stop.empty());
}

std::string StopStrings::push(std::string_view text) {
  if (found_) return {};
  held_ += text;

  // Complete stop strings: the smallest (end, begin).
  std::pair<std::size_t, std::size_t> first{std::string::npos, 0};
  for (const std::string& stop : stops_) {
    const std::size_t begin = held_.find(stop);
    if (begin != std::string::npos) first = std::min(first, {begin + stop.size(), begin});
  }
  if (first.first != std::string::npos) {
    found_ = true;
    held_.resize(first.second);
    return std::exchange(held_, {});
  }

  // The longest tail that begins a stop string.
  std::size_t tail = 0;
  for (const std::string& stop : stops_) {
    for (std::size_t length = std::min(stop.size() - 1, held_.size()); length > tail; --length) {
      if (held_.ends_with(std::string_view(stop).substr(0, length))) tail = length;
    }
  }
  std::string certain = held_.substr(0, held_.size() - tail);
  held_.erase(0, certain.size());
  return certain;
}

std::string StopStrings::finish() {
  return std::exchange(held_, {});
}

}  // namespace eider
