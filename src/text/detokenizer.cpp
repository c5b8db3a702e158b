#include "text/detokenizer.h"

#include <utility>

#include "text/utf8.h"

namespace eider {

Detokenizer::Detokenizer(const Tokenizer& tokenizer, bool at_text_start, ControlTokens control_tokens)
    : tokenizer_(&tokenizer),
      drop_leading_space_(at_text_start && tokenizer.strips_leading_space()),
      control_tokens_(control_tokens) {}

std::string Detokenizer::push(TokenId id) {
  std::string_view bytes = tokenizer_->bytes(id);
  if (bytes.empty() && control_tokens_ == ControlTokens::kSpelled) bytes = tokenizer_->piece(id);
  if (drop_leading_space_ && !bytes.empty()) {
    drop_leading_space_ = false;
    if (bytes.front() == ' ') bytes.remove_prefix(1);
  }
  held_.append(bytes);

  std::string certain;
  std::string_view rest = held_;
  while (!rest.empty()) {
    const Utf8Character character = first_utf8(rest);
    if (character.status == Utf8Status::kTruncated) break;
    if (character.status == Utf8Status::kComplete) {
      certain.append(rest.substr(0, character.length));
    } else {
      certain.append(kReplacementUtf8);
    }
    rest.remove_prefix(character.length);
  }
  held_.erase(0, held_.size() - rest.size());
  return certain;
}

std::string Detokenizer::finish() {
  // What is held is one truncated character, hence one maximal ill-formed subsequence.
  const bool truncated = !std::exchange(held_, {}).empty();
  return truncated ? std::string(kReplacementUtf8) : std::string();
}

}  // namespace eider
