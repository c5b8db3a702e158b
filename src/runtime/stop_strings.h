// StopStrings: watches streamed text for strings that end an answer. Text that could still become one is held
// back, so that no part of a stop string is ever given out, however tokens cut it.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace eider {

/// Length of the longest proper prefix of `word` that `text` ends with: what more text could complete.
std::size_t tail_that_begins(std::string_view text, std::string_view word);

class StopStrings {
 public:
  /// None of `stops` may be empty.
  explicit StopStrings(std::vector<std::string> stops);

  /// Text that is certain now that `text` has followed. Of several stop strings the one that is complete
  /// first counts (of those, the one that began first), so that the outcome does not depend on how the text
  /// was cut. Once found() nothing more comes out.
  std::string push(std::string_view text);
  /// What was held back, when the answer ends for another reason.
  std::string finish();
  bool found() const { return found_.has_value(); }
  /// Which.
  const std::optional<std::string>& found_string() const { return found_; }

 private:
  std::vector<std::string> stops_;
  std::string held_;
  std::optional<std::string> found_;
};

}  // namespace eider
