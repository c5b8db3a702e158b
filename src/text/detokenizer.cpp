#include "text/detokenizer.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "text/utf8.h"

namespace eider {

Detokenizer::Detokenizer(const Tokenizer& tokenizer, bool at_text_start, ControlTokens control_tokens)
    : tokenizer_(&tokenizer),
      leading_space_(at_text_start ? tokenizer.leading_space() : LeadingSpace::kKept),
      control_tokens_(control_tokens) {
  if (tokenizer.vocabulary().clean_up_spaces) cleaner_.emplace();
}

std::string Detokenizer::push(TokenId id) {
  std::string_view bytes = tokenizer_->bytes(id);
  if (bytes.empty() && control_tokens_ == ControlTokens::kSpelled) bytes = tokenizer_->piece(id);
  if (!bytes.empty()) {
    const LeadingSpace rule = std::exchange(leading_space_, LeadingSpace::kKept);
    if (rule == LeadingSpace::kOneDropped && bytes.front() == ' ') bytes.remove_prefix(1);
    const auto is_dropped = [rule](char c) { return c == ' ' && rule == LeadingSpace::kFirstTokenBared; };
    std::ranges::remove_copy_if(bytes, std::back_inserter(held_), is_dropped);
  }
  std::string certain = take_whole_characters();
  return cleaner_ ? cleaner_->push(certain) : certain;
}

std::string Detokenizer::take_whole_characters() {
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
  const std::string_view tail = truncated ? kReplacementUtf8 : std::string_view();
  return cleaner_ ? cleaner_->push(tail) + cleaner_->finish() : std::string(tail);
}

}  // namespace eider
