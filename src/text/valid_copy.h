// ValidCopy: a copy of a text in which each byte that is not part of a character stands as U+FFFD, and the
// way back. For what works on UTF-8 only, pattern matching above all.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace eider {

class ValidCopy {
 public:
  explicit ValidCopy(std::string_view text);

  std::string_view text() const { return copy_; }

  /// Bytes of the original before `offset`, a character's start in the copy. Offsets must not decrease from
  /// call to call.
  std::size_t original_offset(std::size_t offset);

 private:
  std::string copy_;
  std::vector<std::size_t> substitutes_;  // offsets in copy_
  std::size_t next_ = 0;                  // of substitutes_
};

}  // namespace eider
