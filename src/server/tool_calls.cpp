#include "server/tool_calls.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "runtime/stop_strings.h"

namespace eider::server {
namespace {

using Kind = AnswerPart::Kind;
using Syntax = ToolFormat::Syntax;
constexpr std::size_t kNone = std::string_view::npos;
constexpr std::string_view kPythonTag = "<|python_tag|>";

/// A format, and what a template that asks for it has and has not.
struct KnownFormat {
  std::array<std::string_view, 2> has;
  std::array<std::string_view, 2> has_not;
  ToolFormat format;
};

const KnownFormat kFormats[] = {
    // Qwen3-Coder, Qwen 3.5
    {{"<tool_call>", "<function="},
     {"", ""},
     {Syntax::kTagged,
      "<tool_call>",
      "</tool_call>",
      "",
      "",
      "<tool_call>\n<function=",
      "<tool_call>\n<function=",
      ">\n",
      "",
      {"<function=", ">", "<parameter=", ">", "", "</parameter>", "</function>"}}},
    // GLM 4.5 to 4.7
    {{"<tool_call>", "<arg_key>"},
     {"", ""},
     {Syntax::kTagged,
      "<tool_call>",
      "</tool_call>",
      "",
      "",
      "<tool_call>",
      "<tool_call>",
      "\n",
      "",
      {"", "", "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>", "</tool_call>"}}},
    // Kimi K2
    {{"<|tool_call_begin|>", "<|tool_call_argument_begin|>"},
     {"", ""},
     {Syntax::kNamed,
      "<|tool_call_begin|>",
      "<|tool_call_end|>",
      "<|tool_call_argument_begin|>",
      "",
      "<|tool_calls_section_begin|><|tool_call_begin|>functions.",
      "<|tool_calls_section_begin|><|tool_call_begin|>functions.",
      ":0<|tool_call_argument_begin|>",
      "functions.",
      {},
      {"<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"}}},
    // gpt-oss: what is neither thought nor call is framed too.
    {{"<|channel|>commentary", "functions."},
     {"", ""},
     {Syntax::kNamed,
      "to=functions.",
      "",
      "<|",
      "",
      "<|channel|>commentary to=functions.",
      "<|channel|>commentary to=functions.",
      " <|constrain|>json<|message|>",
      "functions.",
      {},
      {"<|start|>assistant", "<|channel|>final<|message|>", "<|channel|>commentary<|message|>",
       "<|channel|>commentary ", "<|end|>"},
      true}},
    // Hermes, Qwen 2.5 and 3, Granite 4; others put XML inside of the same tags.
    {{"<tool_call>", "arguments"},
     {"", ""},
     {Syntax::kObject, "<tool_call>", "</tool_call>", "", "arguments", "<tool_call>\n{\"name\": \"",
      "<tool_call>\n{\"name\": \"", "\", \"arguments\": "}},
    // Mistral Small 3.2, Devstral
    {{"[TOOL_CALLS]", "[ARGS]"},
     {"", ""},
     {Syntax::kNamed, "[TOOL_CALLS]", "", "[ARGS]", "", "[TOOL_CALLS]", "[TOOL_CALLS]", "[ARGS]"}},
    // Mistral Nemo
    {{"[TOOL_CALLS]", ""},
     {"[ARGS]", ""},
     {Syntax::kList, "[TOOL_CALLS]", "", "", "arguments", "[TOOL_CALLS][{\"name\": \"",
      "[TOOL_CALLS][{\"name\": \"", "\", \"arguments\": "}},
    // DeepSeek V3, R1 and their distillations
    {{"<｜tool▁call▁begin｜>", "<｜tool▁sep｜>"},
     {"", ""},
     {Syntax::kNamed,
      "<｜tool▁call▁begin｜>",
      "<｜tool▁call▁end｜>",
      "<｜tool▁sep｜>",
      "",
      "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>",
      "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>",
      "<｜tool▁sep｜>",
      "",
      {},
      {"<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"}}},
    // Llama 3.1 to 3.3
    {{"\"parameters\": ", "{\"name\": function name"},
     {"<tool_call>", ""},
     {Syntax::kBare, "", "", "", "parameters", "{\"name\": \"", "{\"name\": \"", "\", \"parameters\": "}},
};

std::size_t skip_spaces(std::string_view text, std::size_t begin) {
  return std::min(text.find_first_not_of(kSpaces, begin), text.size());
}

std::size_t end_of_json_string(std::string_view text, std::size_t begin) {
  for (std::size_t i = begin + 1; i < text.size(); ++i) {
    if (text[i] == '\\')
      ++i;
    else if (text[i] == '"')
      return i + 1;
  }
  return kNone;
}

/// Behind the brace that closes the object of which `text` begins inside; npos where it is not there.
std::size_t end_of_open_object(std::string_view text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '}') return i + 1;
    if (text[i] != '"' && text[i] != '{' && text[i] != '[') continue;
    const std::size_t end = end_of_json_value(text, i);
    if (end == kNone) return kNone;
    i = end - 1;
  }
  return kNone;
}

/// What a call says before its arguments.
struct CallHead {
  enum class Outcome : std::uint8_t { kIncomplete, kNoCall, kFound } outcome = Outcome::kIncomplete;
  std::string name = {};
  std::size_t arguments = 0;  ///< where they begin; kNone: the call has none
  std::size_t end = 0;        ///< behind the call where it has none
};

/// Reads the members of the object at `begin` up to the arguments, wherever the name stands.
CallHead read_call_head(std::string_view text, std::size_t begin, std::string_view arguments_key) {
  using Outcome = CallHead::Outcome;
  std::optional<std::string> name;
  std::size_t arguments = kNone;
  std::size_t at = begin + 1;
  for (;;) {
    at = skip_spaces(text, at);
    if (at == text.size()) return {};
    if (text[at] == ',') {
      ++at;
      continue;
    }
    if (text[at] == '}') {
      if (!name) return {Outcome::kNoCall};
      return {Outcome::kFound, *name, arguments, at};
    }
    if (text[at] != '"') return {Outcome::kNoCall};
    const std::size_t key_end = end_of_json_string(text, at);
    if (key_end == kNone) return {};
    const std::string_view key = text.substr(at + 1, key_end - at - 2);
    at = skip_spaces(text, key_end);
    if (at == text.size()) return {};
    if (text[at] != ':') return {Outcome::kNoCall};
    at = skip_spaces(text, at + 1);
    if (at == text.size()) return {};
    if (key == arguments_key) {
      arguments = at;
      if (name) return {Outcome::kFound, *name, arguments, 0};
    }
    const std::size_t end = end_of_json_value(text, at);
    if (end == kNone) return {};
    if (key == "name") {
      const auto value = nlohmann::json::parse(text.substr(at, end - at), nullptr, false);
      if (!value.is_string()) return {Outcome::kNoCall};
      name = value.get<std::string>();
      if (arguments != kNone) return {Outcome::kFound, *name, arguments, 0};
    }
    at = end;
  }
}

/// "get_weather" of "get_weather[CALL_ID]abc[ARGS]", "get_weather<｜tool▁sep｜>",
/// "function<｜tool▁sep｜>get_weather\n```json\n" and "functions.get_weather:0<|tool_call_argument_begin|>".
std::string name_in_head(std::string_view head, const ToolFormat& format) {
  const std::string_view separator = format.separator;
  const std::size_t cut = head.find(separator);
  std::string_view name = head.substr(0, cut);
  const std::size_t behind = cut == kNone ? head.size() : skip_spaces(head, cut + separator.size());
  if (behind < head.size() && format.name_prefix.empty())
    name = head.substr(behind, head.find('\n', behind) - behind);
  name = name.substr(0, name.find("[CALL_ID]"));
  const std::size_t begin = skip_spaces(name, 0);
  name = name.substr(begin, name.find_last_not_of(kSpaces) + 1 - begin);
  if (!format.name_prefix.empty()) name = name.substr(0, name.rfind(':'));
  if (name.starts_with(format.name_prefix)) name.remove_prefix(format.name_prefix.size());
  return std::string(name);
}

bool is_tool_name(std::string_view name) {
  return !name.empty() && std::ranges::all_of(name, [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_' || c == '-' || c == '.' || c >= 0x80;
  });
}

}  // namespace

std::size_t end_of_json_value(std::string_view text, std::size_t begin) {
  if (begin >= text.size()) return kNone;
  if (text[begin] == '"') return end_of_json_string(text, begin);
  if (text[begin] != '{' && text[begin] != '[') return text.find_first_of(",}] \t\r\n", begin);
  int depth = 0;
  for (std::size_t i = begin; i < text.size(); ++i) {
    if (text[i] == '"') {
      const std::size_t end = end_of_json_string(text, i);
      if (end == kNone) return kNone;
      i = end - 1;
    } else if (text[i] == '{' || text[i] == '[') {
      ++depth;
    } else if ((text[i] == '}' || text[i] == ']') && --depth == 0) {
      return i + 1;
    }
  }
  return kNone;
}

const ToolFormat* tool_format_of(std::string_view chat_template) {
  const auto has = [&](std::string_view text) { return chat_template.find(text) != kNone; };
  const auto* known = std::ranges::find_if(kFormats, [&](const KnownFormat& candidate) {
    return std::ranges::all_of(candidate.has, has) &&
           std::ranges::none_of(candidate.has_not,
                                [&](std::string_view text) { return !text.empty() && has(text); });
  });
  return known == std::end(kFormats) ? nullptr : &known->format;
}

bool ToolFormat::has_mark(std::string_view piece) const {
  const auto has_piece = [piece](std::string_view part) { return part.find(piece) != kNone; };
  return !piece.empty() &&
         (std::ranges::any_of(std::array{open, close, separator, force_arguments, tags.key_open,
                                         tags.key_close, tags.value_open, tags.value_close},
                              has_piece) ||
          std::ranges::any_of(marks, has_piece));
}

ToolCallParser::ToolCallParser(const ToolFormat* format,
                               std::shared_ptr<const TextParameters> text_parameters)
    : format_(format),
      text_parameters_(std::move(text_parameters)),
      state_(format != nullptr && format->syntax == Syntax::kBare ? State::kStart : State::kText) {}

std::vector<AnswerPart> ToolCallParser::push(std::string_view text) {
  held_ += text;
  std::vector<AnswerPart> parts;
  if (format_ == nullptr)
    give_text(held_.size(), parts);
  else
    while (step(parts)) {
    }
  return parts;
}

std::vector<AnswerPart> ToolCallParser::finish() {
  std::vector<AnswerPart> parts;
  if (state_ == State::kHead) held_.insert(0, format_->open);
  const bool is_text = state_ == State::kStart || state_ == State::kText || state_ == State::kHead;
  if (is_text) {
    give_text(held_.size(), parts);
    if (!space_.empty() && next_index_ == 0) parts.push_back({Kind::kText, std::exchange(space_, {})});
  }
  held_.clear();
  return parts;
}

/// One step of the state machine; false where it needs more text.
bool ToolCallParser::step(std::vector<AnswerPart>& parts) {
  if (held_.empty()) return false;
  switch (state_) {
    case State::kStart:
      return read_start(parts);
    case State::kText:
      return read_text(parts);
    case State::kHead:
      return read_head(parts);
    case State::kArguments:
      return tagged_ ? read_tagged_arguments(parts) : read_arguments(parts);
    case State::kTail:
      return read_tail(parts);
  }
  return false;
}

/// An answer that is a call as a whole says so with its first character.
bool ToolCallParser::read_start(std::vector<AnswerPart>& /*parts*/) {
  if (kPythonTag.starts_with(held_)) return false;
  if (held_.starts_with(kPythonTag)) held_.erase(0, kPythonTag.size());
  const std::size_t begin = skip_spaces(held_, 0);
  if (begin == held_.size()) return false;
  if (held_[begin] == '{') {
    held_.erase(0, begin);
    state_ = State::kHead;
  } else {
    state_ = State::kText;
  }
  return true;
}

bool ToolCallParser::read_text(std::vector<AnswerPart>& parts) {
  if (format_->open.empty()) {
    give_text(held_.size(), parts);
    return false;
  }
  for (const std::string_view mark : format_->marks)
    while (!mark.empty() && held_.find(mark) < held_.find(format_->open))
      held_.erase(held_.find(mark), mark.size());
  const std::size_t open = held_.find(format_->open);
  if (open != kNone) {
    give_text(open, parts);
    space_.clear();
    held_.erase(0, format_->open.size());
    state_ = State::kHead;
    return true;
  }
  std::size_t tail = tail_that_begins(held_, format_->open);
  for (const std::string_view mark : format_->marks) tail = std::max(tail, tail_that_begins(held_, mark));
  give_text(held_.size() - tail, parts);
  return false;
}

/// Gives out the first bytes of what is held as text, but white space behind them only when more text
/// follows.
void ToolCallParser::give_text(std::size_t length, std::vector<AnswerPart>& parts) {
  std::string text = std::exchange(space_, {}) + held_.substr(0, length);
  held_.erase(0, length);
  if (format_ != nullptr) {
    const std::size_t end = text.find_last_not_of(kSpaces) + 1;  // npos + 1 == 0
    space_ = text.substr(end);
    text.resize(end);
  }
  if (!text.empty()) parts.push_back({Kind::kText, std::move(text)});
}

bool ToolCallParser::read_head(std::vector<AnswerPart>& parts) {
  if (format_->syntax == Syntax::kNamed) return read_named_head(parts);
  return format_->syntax == Syntax::kTagged ? read_tagged_head(parts) : read_object_head(parts);
}

/// What opened like a call is none.
void ToolCallParser::take_for_text(std::vector<AnswerPart>& parts) {
  held_.insert(0, format_->open);
  give_text(format_->open.size(), parts);
  state_ = State::kText;
}

bool ToolCallParser::read_object_head(std::vector<AnswerPart>& parts) {
  std::size_t begin = skip_spaces(held_, 0);
  if (format_->syntax == Syntax::kList && begin < held_.size() &&
      (held_[begin] == '[' || held_[begin] == ','))
    begin = skip_spaces(held_, begin + 1);
  if (begin == held_.size()) return false;
  const CallHead head = held_[begin] == '{' ? read_call_head(held_, begin, format_->arguments_key)
                                            : CallHead{CallHead::Outcome::kNoCall};
  if (head.outcome == CallHead::Outcome::kIncomplete) return false;
  if (head.outcome == CallHead::Outcome::kNoCall) {
    take_for_text(parts);
    return true;
  }
  begin_call(head.name, parts);
  if (head.arguments == kNone) {
    parts.push_back({Kind::kToolArguments, "{}", next_index_ - 1});
    held_.erase(0, head.end);
    state_ = State::kTail;
  } else {
    held_.erase(0, head.arguments);
  }
  return true;
}

bool ToolCallParser::read_named_head(std::vector<AnswerPart>& parts) {
  const std::size_t brace = held_.find('{');
  if (brace == kNone) return false;
  begin_call(name_in_head(std::string_view(held_).substr(0, brace), *format_), parts);
  held_.erase(0, brace);
  return true;
}

bool ToolCallParser::read_tagged_head(std::vector<AnswerPart>& parts) {
  const CallTags& tags = format_->tags;
  const std::string_view head = std::string_view(held_).substr(skip_spaces(held_, 0));
  if (head.size() < tags.name_open.size() && tags.name_open.starts_with(head)) return false;
  const std::string_view rest = head.substr(std::min(tags.name_open.size(), head.size()));
  const std::size_t end = tags.name_close.empty() ? rest.find_first_of("\n<") : rest.find(tags.name_close);
  const std::string_view name = rest.substr(0, end);
  if (!head.starts_with(tags.name_open) || (!name.empty() && !is_tool_name(name)) || end == 0) {
    take_for_text(parts);
    return true;
  }
  if (end == kNone) return false;
  const auto is_text = [known = text_parameters_, tool = std::string(name)](const std::string& key) {
    return known != nullptr && known->contains({tool, key});
  };
  tagged_.emplace(tags, is_text);
  const std::size_t taken = held_.size() - rest.size() + end + tags.name_close.size();
  begin_call(std::string(name), parts);
  held_.erase(0, taken);
  return true;
}

bool ToolCallParser::read_tagged_arguments(std::vector<AnswerPart>& parts) {
  std::string json = tagged_->take(held_);
  if (!json.empty()) parts.push_back({Kind::kToolArguments, std::move(json), next_index_ - 1});
  if (!tagged_->done()) return false;
  tagged_.reset();
  state_ = State::kTail;
  return true;
}

void ToolCallParser::begin_call(std::string name, std::vector<AnswerPart>& parts) {
  parts.push_back({Kind::kToolCall, std::move(name), next_index_++});
  state_ = State::kArguments;
  depth_ = 0;
  in_string_ = escaped_ = false;
}

/// Gives out arguments up to the end of their value.
bool ToolCallParser::read_arguments(std::vector<AnswerPart>& parts) {
  if (depth_ == 0 && held_.front() != '{' && held_.front() != '[') {
    // Some models write the object as JSON inside of a string.
    const std::size_t end = end_of_json_value(held_, 0);
    if (end == kNone) return false;
    const auto value = nlohmann::json::parse(held_.substr(0, end), nullptr, false);
    parts.push_back(
        {Kind::kToolArguments, value.is_string() ? value.get<std::string>() : "{}", next_index_ - 1});
    held_.erase(0, end);
    state_ = State::kTail;
    return true;
  }
  std::size_t end = 0;
  bool whole = false;
  while (end < held_.size() && !whole) {
    const char c = held_[end++];
    if (in_string_) {
      in_string_ = escaped_ || c != '"';
      escaped_ = !escaped_ && c == '\\';
    } else if (c == '"') {
      in_string_ = true;
    } else if (c == '{' || c == '[') {
      ++depth_;
    } else if (c == '}' || c == ']') {
      whole = --depth_ == 0;
    }
  }
  parts.push_back({Kind::kToolArguments, held_.substr(0, end), next_index_ - 1});
  held_.erase(0, end);
  if (whole) state_ = State::kTail;
  return whole;
}

/// What stands between a call's arguments and its end, or the next call of a list.
bool ToolCallParser::read_tail(std::vector<AnswerPart>& /*parts*/) {
  if (format_->syntax == Syntax::kBare) {  // nothing that follows is worth telling
    held_.clear();
    return false;
  }
  if (format_->syntax == Syntax::kList) {
    const std::size_t end = end_of_open_object(held_);
    const std::size_t next = end == kNone ? kNone : held_.find_first_of(",]", end);
    if (next == kNone) return false;
    state_ = held_[next] == ',' ? State::kHead : State::kText;
    held_.erase(0, next + 1);
    return true;
  }
  if (format_->close.empty()) {
    state_ = State::kText;
    return true;
  }
  const std::size_t close = held_.find(format_->close);
  if (close == kNone) return false;
  held_.erase(0, close + format_->close.size());
  state_ = State::kText;
  return true;
}

}  // namespace eider::server
