#include "server/answer_parser.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace eider::server {
namespace {

void drop_leading_space(std::string& text) {
  text.erase(0, text.find_first_not_of(kSpaces));  // npos: all of it
}

}  // namespace

AnswerParser::AnswerParser(const AnswerBeginning& beginning)
    : splitter_(beginning.thought),
      tools_(beginning.tools, beginning.text_parameters),
      forced_(beginning.forced),
      single_call_(beginning.single_call),
      thought_(beginning.thought),
      at_start_(beginning.thought != nullptr) {}

std::vector<AnswerPart> AnswerParser::push(std::string_view text) {
  return take(splitter_.push(std::exchange(forced_, {}).append(text)));
}

std::vector<AnswerPart> AnswerParser::finish() {
  std::vector<AnswerPart> parts = push("");
  std::ranges::move(take(splitter_.finish()), std::back_inserter(parts));
  std::ranges::move(tools_.finish(), std::back_inserter(parts));
  return parts;
}

std::vector<AnswerPart> AnswerParser::take(const std::vector<ThinkingSplitter::Part>& pieces) {
  std::vector<AnswerPart> parts;
  for (const ThinkingSplitter::Part& piece : pieces) {
    if (piece.thinking)
      take_thought(piece.text, parts);
    else
      take_text(piece.text, parts);
  }
  return parts;
}

void AnswerParser::take_thought(std::string text, std::vector<AnswerPart>& parts) {
  if (thought_ == nullptr) {  // the splitter gives an opening tag by itself
    const auto formats = thinking_formats();
    thought_ =
        &*std::ranges::find_if(formats, [&](const ThinkingFormat& format) { return format.open == text; });
    at_start_ = true;
    return;
  }
  const bool ends = text.ends_with(thought_->close);
  if (ends) text.resize(text.size() - thought_->close.size());
  if (at_start_) drop_leading_space(text);
  at_start_ = at_start_ && text.empty();
  text.insert(0, std::exchange(space_, {}));
  const std::size_t end = text.find_last_not_of(kSpaces) + 1;  // npos + 1 == 0
  space_ = text.substr(end);
  text.resize(end);
  if (!text.empty()) parts.push_back({AnswerPart::Kind::kReasoning, std::move(text)});
  if (!ends) return;
  space_.clear();
  thought_ = nullptr;
  at_start_ = true;
}

void AnswerParser::take_text(std::string text, std::vector<AnswerPart>& parts) {
  if (at_start_) drop_leading_space(text);
  at_start_ = at_start_ && text.empty();
  for (AnswerPart& part : tools_.push(text))
    if (!single_call_ || part.tool_index == 0) parts.push_back(std::move(part));
}

}  // namespace eider::server
