#include "runtime/thinking.h"

#include <utility>

#include "runtime/stop_strings.h"

namespace eider {
namespace {

constexpr std::string_view kOpen = "<think>", kClose = "</think>";

}  // namespace

bool prompt_opens_thought(std::string_view prompt) {
  const std::size_t last = prompt.find_last_not_of(" \n");
  return last != std::string_view::npos && prompt.substr(0, last + 1).ends_with(kOpen);
}

std::vector<ThinkingSplitter::Part> ThinkingSplitter::push(std::string_view text) {
  held_ += text;
  std::vector<Part> parts;
  const auto give_out = [&](std::size_t length, bool thinking) {
    if (length == 0) return;
    parts.push_back({held_.substr(0, length), thinking});
    held_.erase(0, length);
  };
  for (;;) {
    const std::string_view tag = thinking_ ? kClose : kOpen;
    const std::size_t begin = held_.find(tag);
    if (begin == std::string::npos) {
      give_out(held_.size() - tail_that_begins(held_, tag), thinking_);
      return parts;
    }
    // The tags belong to the thought: an opening one begins it, a closing one ends it.
    if (thinking_) {
      give_out(begin + tag.size(), true);
    } else {
      give_out(begin, false);
    }
    thinking_ = !thinking_;
    if (thinking_) give_out(tag.size(), true);
  }
}

std::vector<ThinkingSplitter::Part> ThinkingSplitter::finish() {
  if (held_.empty()) return {};
  return {{std::exchange(held_, {}), thinking_}};
}

}  // namespace eider
