// From the messages of a chat to the prompt of its next answer: what the chat endpoints share. Each brings
// its API's messages into the shape of chat completions, which is what chat templates know.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/conversation.h"
#include "server/answer_parser.h"
#include "server/context.h"
#include "server/fields.h"

namespace eider::server {

/// Which tools the answer may call.
struct ToolChoice {
  enum class Kind : std::uint8_t { kAuto, kNone, kAny, kOne } kind = Kind::kAuto;
  std::string name = {};  ///< kOne
};

struct Chat {
  Json messages = Json::array();  ///< of chat completions: role, content (text), tool_calls, tool_call_id
  Json tools = Json::array();     ///< {"type": "function", "function": {name, description, parameters}}
  ToolChoice tool_choice;
  bool single_call = false;         ///< no more than one call in an answer
  Json variables = Json::object();  ///< of the template, that the request sets
};

struct ChatPrompt {
  std::string text;
  Conversation conversation;  ///< its ids are the prompt's
  AnswerBeginning beginning;
};

/// The messages and tools of chat completions, checked: an element that is no message is a problem.
void read_chat_messages(Fields& fields, Chat& chat);
void read_chat_tools(Fields& fields, Chat& chat);
/// chat_template_kwargs, an object of variables
void read_template_variables(Fields& fields, Chat& chat);

/// How much the model is asked to think, in the variables that templates know; "none": not at all.
void set_reasoning_effort(const std::string& effort, Chat& chat);

/// A tool's "function" member, checked, as one of Chat::tools.
Json read_function(Fields& function, std::string_view parameters_key);
/// The text of a message's content: a string, or parts of which all have one of the types `types` and a
/// `text`.
std::optional<std::string> read_text_content(Fields& message, std::string_view key,
                                             std::initializer_list<std::string_view> types);
/// Arguments, JSON text, as the object that templates want; as they are where they are no object.
Json arguments_object(const std::string& text);

/// `scope`: whose answers are known by their ids; nothing: the text is tokenised afresh. Fails, as a problem,
/// where there is no template, it refuses the messages, or the tool choice cannot be kept.
std::optional<ChatPrompt> prepare_chat(const Context& context, const Chat& chat,
                                       const std::optional<std::string>& scope, Problem& problem);

/// Holds the answer to one JSON object, as the request's field `param` asks for. A problem where the answer
/// must be the call of a tool.
void hold_to_json(const Context& context, const ChatPrompt& prompt, std::string_view param,
                  serving::Request& request, Problem& problem);

}  // namespace eider::server
