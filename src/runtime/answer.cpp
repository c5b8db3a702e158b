#include "runtime/answer.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace eider {

bool begins_text(const Tokenizer& tokenizer, std::span<const TokenId> ids) {
  return std::all_of(ids.begin(), ids.end(), [&](TokenId id) { return tokenizer.bytes(id).empty(); });
}

Status GenerationLimits::check() const {
  for (const std::string& text : stop) {
    if (text.empty()) return error("a stop string is empty: it would end every answer before it begins");
  }
  return {};
}

const char* finish_reason_name(FinishReason reason) {
  switch (reason) {
    case FinishReason::kStop:
      return "stop";
    case FinishReason::kLength:
      return "length";
    case FinishReason::kCancelled:
      return "cancelled";
    case FinishReason::kDeadline:
      return "deadline";
  }
  check_failed(__FILE__, __LINE__, "a FinishReason outside its list");
}

Answer::Answer(const Tokenizer& tokenizer, bool at_text_start, GenerationLimits limits, std::int64_t places)
    : tokenizer_(&tokenizer),
      ignore_eos_(limits.ignore_eos),
      most_(limits.max_tokens >= 0 ? std::min(places, limits.max_tokens) : places),
      detokenizer_(tokenizer, at_text_start),
      stop_strings_(std::move(limits.stop)) {
  ids_.reserve(static_cast<std::size_t>(most_));  // a step of the loop never has to grow the list
}

std::string Answer::push(TokenId id) {
  EIDER_CHECK(!done());
  ids_.push_back(id);
  if (tokenizer_->ends_turn(id) && !ignore_eos_) return finish(FinishReason::kStop);
  std::string text = stop_strings_.push(detokenizer_.push(id));
  if (stop_strings_.found_string()) return text + finish(FinishReason::kStop);
  if (static_cast<std::int64_t>(ids_.size()) >= most_) return text + finish(FinishReason::kLength);
  return text;
}

std::string Answer::finish(FinishReason reason) {
  done_ = true;
  finish_reason_ = reason;
  std::string text = stop_strings_.push(detokenizer_.finish());
  return text + stop_strings_.finish();
}

}  // namespace eider
