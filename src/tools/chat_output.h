// AnswerPrinter: an answer on its way to stdout, thoughts dimmed where stdout is a terminal that shows
// colours.
#pragma once

#include <string_view>

#include "base/result.h"
#include "runtime/thinking.h"

namespace eider {

class AnswerPrinter {
 public:
  /// `opened`: the thought that the answer begins inside, null: none.
  explicit AnswerPrinter(const ThinkingFormat* opened);

  Status print(std::string_view text);
  /// Prints what was held back and ends the line.
  Status finish();

 private:
  Status print(const std::vector<ThinkingSplitter::Part>& parts);

  ThinkingSplitter splitter_;
  bool terminal_;
  bool colors_;
  bool in_line_ = false;
};

}  // namespace eider
