// AnswerParser: an answer's text as it streams, taken apart into what the model thought, what it says, and
// the tools that it calls.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/thinking.h"
#include "server/tool_calls.h"

namespace eider::server {

/// What a prompt has already said of its answer.
struct AnswerBeginning {
  const ThinkingFormat* thought = nullptr;  ///< of the thought that the answer begins inside
  const ToolFormat* tools = nullptr;        ///< null: the request has none
  std::shared_ptr<const TextParameters> text_parameters = nullptr;  ///< of these tools
  std::string forced;        ///< the answer's first bytes, which the prompt ends with
  bool single_call = false;  ///< calls after the first are dropped
};

class AnswerParser {
 public:
  explicit AnswerParser(const AnswerBeginning& beginning);

  /// What is certain now that `text` has followed, none of it empty.
  std::vector<AnswerPart> push(std::string_view text);
  std::vector<AnswerPart> finish();
  std::int64_t tool_calls() const { return tools_.calls(); }

 private:
  std::vector<AnswerPart> take(const std::vector<ThinkingSplitter::Part>& pieces);
  void take_thought(std::string text, std::vector<AnswerPart>& parts);
  void take_text(std::string text, std::vector<AnswerPart>& parts);

  ThinkingSplitter splitter_;
  ToolCallParser tools_;
  std::string forced_;
  bool single_call_;
  const ThinkingFormat* thought_;  // that the answer is inside of
  bool at_start_;                  // of a thought, or of what follows one: white space is dropped
  std::string space_;              // white space behind the thought so far
};

}  // namespace eider::server
