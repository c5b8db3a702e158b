// ThinkingSplitter: tells what a model thinks (from <think> to </think>, the tags included) from what it
// says, while the text streams.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace eider {

/// Whether an answer to this prompt begins inside a thought: templates of some models open it themselves.
bool prompt_opens_thought(std::string_view prompt);

class ThinkingSplitter {
 public:
  explicit ThinkingSplitter(bool thinking) : thinking_(thinking) {}

  struct Part {
    std::string text;
    bool thinking;
    bool operator==(const Part&) const = default;
  };

  /// The parts that are certain now that `text` has followed, none of them empty. A tail that could become a
  /// tag is held back.
  std::vector<Part> push(std::string_view text);
  /// What was held back.
  std::vector<Part> finish();

 private:
  bool thinking_;
  std::string held_;
};

}  // namespace eider
