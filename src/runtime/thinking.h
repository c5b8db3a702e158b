// ThinkingSplitter: tells what a model thinks from what it says, while the text streams, by the tags that
// published models put around their thoughts.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace eider {

/// The tags that one family of models thinks between.
struct ThinkingFormat {
  std::string_view open, close;
};

/// All formats that are told apart.
std::span<const ThinkingFormat> thinking_formats();

/// The format of the thought that an answer to this prompt begins inside: templates of some models open it
/// themselves. Null where there is none.
const ThinkingFormat* thought_opened_by(std::string_view prompt);

class ThinkingSplitter {
 public:
  /// `opened`: the format of the thought that the text begins inside; null: it begins with what is said.
  explicit ThinkingSplitter(const ThinkingFormat* opened) : thought_(opened) {}

  struct Part {
    std::string text;
    bool thinking;
    bool operator==(const Part&) const = default;
  };

  /// The parts that are certain now that `text` has followed, none of them empty. Tags belong to the thought.
  /// A tail that could become a tag is held back.
  std::vector<Part> push(std::string_view text);
  /// What was held back.
  std::vector<Part> finish();

 private:
  const ThinkingFormat* thought_;  // null: outside of thoughts
  std::string held_;
};

}  // namespace eider
