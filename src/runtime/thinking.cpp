#include "runtime/thinking.h"

#include <algorithm>
#include <array>
#include <utility>

#include "runtime/stop_strings.h"

namespace eider {
namespace {

constexpr std::array<ThinkingFormat, 9> kFormats{{
    {"<think>", "</think>"},                                    // most: DeepSeek, Qwen 3, GLM, Kimi, SmolLM 3
    {"<thinking>", "</thinking>"},                              // Apriel 1.5
    {"<seed:think>", "</seed:think>"},                          // Seed OSS
    {"<mm:think>", "</mm:think>"},                              // MiniMax M3
    {"[THINK]", "[/THINK]"},                                    // Magistral
    {"<|START_THINKING|>", "<|END_THINKING|>"},                 // Command R7B, Command A
    {"<|channel>thought", "<channel|>"},                        // Gemma 4
    {"<|channel|>analysis<|message|>", "<|end|>"},              // gpt-oss
    {"Here are my reasoning steps:", "[BEGIN FINAL RESPONSE]"}  // Apriel 1.6
}};

struct FoundTag {
  std::size_t begin = std::string_view::npos;
  const ThinkingFormat* format = nullptr;
};

// The opening tag that stands first in `text`.
FoundTag find_open(std::string_view text) {
  FoundTag first;
  for (const ThinkingFormat& format : kFormats) {
    const std::size_t begin = text.find(format.open);
    if (begin < first.begin) first = {begin, &format};
  }
  return first;
}

// Length of the longest tail of `text` that could become an opening tag.
std::size_t tail_that_opens(std::string_view text) {
  std::size_t longest = 0;
  for (const ThinkingFormat& format : kFormats)
    longest = std::max(longest, tail_that_begins(text, format.open));
  return longest;
}

}  // namespace

std::span<const ThinkingFormat> thinking_formats() {
  return kFormats;
}

const ThinkingFormat* thought_opened_by(std::string_view prompt) {
  const std::string_view text = prompt.substr(0, prompt.find_last_not_of(" \n") + 1);  // npos + 1 == 0
  const auto* opened = std::ranges::find_if(
      kFormats, [&](const ThinkingFormat& format) { return text.ends_with(format.open); });
  return opened == kFormats.end() ? nullptr : opened;
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
    if (thought_ != nullptr) {
      const std::size_t begin = held_.find(thought_->close);
      if (begin == std::string::npos) {
        give_out(held_.size() - tail_that_begins(held_, thought_->close), true);
        return parts;
      }
      give_out(begin + thought_->close.size(), true);
      thought_ = nullptr;
    } else {
      const FoundTag tag = find_open(held_);
      if (tag.format == nullptr) {
        give_out(held_.size() - tail_that_opens(held_), false);
        return parts;
      }
      give_out(tag.begin, false);
      give_out(tag.format->open.size(), true);
      thought_ = tag.format;
    }
  }
}

std::vector<ThinkingSplitter::Part> ThinkingSplitter::finish() {
  if (held_.empty()) return {};
  return {{std::exchange(held_, {}), thought_ != nullptr}};
}

}  // namespace eider
