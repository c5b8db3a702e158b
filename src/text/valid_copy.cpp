#include "text/valid_copy.h"

#include "text/utf8.h"

namespace eider {

ValidCopy::ValidCopy(std::string_view text) {
  copy_.reserve(text.size());
  while (!text.empty()) {
    const Utf8Character character = first_utf8(text);
    if (character.status == Utf8Status::kComplete) {
      copy_.append(text.substr(0, character.length));
      text.remove_prefix(character.length);
    } else {
      substitutes_.push_back(copy_.size());
      copy_.append(kReplacementUtf8);
      text.remove_prefix(1);
    }
  }
}

std::size_t ValidCopy::original_offset(std::size_t offset) {
  while (next_ < substitutes_.size() && substitutes_[next_] < offset) ++next_;
  return offset - next_ * (kReplacementUtf8.size() - 1);
}

}  // namespace eider
