// ToolCallParser: finds the calls of tools in an answer, in the words that the model's chat template taught
// it, and gives them out while they stream.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/tagged_arguments.h"

namespace eider::server {

/// How a family of models writes a call.
struct ToolFormat {
  enum class Syntax : std::uint8_t {
    kObject,  ///< open {"name": ..., "arguments": {...}} close
    kList,    ///< open [{"name": ..., "arguments": {...}}, ...]
    kNamed,   ///< open name separator {...} close
    kBare,    ///< the whole answer is {"name": ..., "parameters": {...}}
    kTagged,  ///< open name and arguments as `tags` has them close
  };

  Syntax syntax;
  std::string_view open, close, separator;
  std::string_view arguments_key;
  std::string_view force_any;  ///< how a prompt ends that leaves the model nothing but a call ...
  std::string_view force_one;  ///< ... or the call of one tool: this, its name, and `force_arguments`
  std::string_view force_arguments;
  std::string_view name_prefix = {};  ///< before a name in kNamed, which a ':' may end: "functions.f:0"
  CallTags tags = {};
  std::array<std::string_view, 5> marks = {};  ///< around calls and text; they mean nothing by themselves
  bool frames_text = false;                    ///< `marks` are in answers without tools too

  /// Whether the format is made of `piece`, a control token as it is spelled, among others.
  bool has_mark(std::string_view piece) const;
};

/// The format that a chat template asks for; null where it is none of those that are known.
const ToolFormat* tool_format_of(std::string_view chat_template);

/// A piece of an answer.
struct AnswerPart {
  enum class Kind : std::uint8_t { kText, kReasoning, kToolCall, kToolArguments };

  Kind kind = Kind::kText;
  std::string text;             ///< the piece; kToolCall: the tool's name
  std::int64_t tool_index = 0;  ///< of the call in its answer; kToolCall, kToolArguments
  bool operator==(const AnswerPart&) const = default;
};

class ToolCallParser {
 public:
  /// Null: there are no tools, and all is text. `text_parameters`: null: there are none.
  explicit ToolCallParser(const ToolFormat* format,
                          std::shared_ptr<const TextParameters> text_parameters = nullptr);

  /// What is certain now that `text` has followed. A call begins with its kToolCall; the pieces of its
  /// arguments are a JSON object together.
  std::vector<AnswerPart> push(std::string_view text);
  /// What was held back: a call that did not get as far as its arguments is text.
  std::vector<AnswerPart> finish();
  std::int64_t calls() const { return next_index_; }

 private:
  enum class State : std::uint8_t { kStart, kText, kHead, kArguments, kTail };

  bool step(std::vector<AnswerPart>& parts);
  bool read_start(std::vector<AnswerPart>& parts);
  bool read_text(std::vector<AnswerPart>& parts);
  bool read_head(std::vector<AnswerPart>& parts);
  bool read_object_head(std::vector<AnswerPart>& parts);
  bool read_named_head(std::vector<AnswerPart>& parts);
  bool read_tagged_head(std::vector<AnswerPart>& parts);
  void take_for_text(std::vector<AnswerPart>& parts);
  bool read_tagged_arguments(std::vector<AnswerPart>& parts);
  bool read_arguments(std::vector<AnswerPart>& parts);
  bool read_tail(std::vector<AnswerPart>& parts);
  void begin_call(std::string name, std::vector<AnswerPart>& parts);
  void give_text(std::size_t length, std::vector<AnswerPart>& parts);

  const ToolFormat* format_;
  std::shared_ptr<const TextParameters> text_parameters_;
  State state_;
  std::string held_;
  std::string space_;  // white space behind the text so far, dropped where a call follows
  std::int64_t next_index_ = 0;
  // Of the arguments that are under way.
  int depth_ = 0;
  bool in_string_ = false, escaped_ = false;
  std::optional<TaggedArguments> tagged_;
};

/// Behind the JSON value that begins at `begin`, which is not white space; npos where it is not whole.
std::size_t end_of_json_value(std::string_view text, std::size_t begin);

}  // namespace eider::server
