#include "server/chat_prompt.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "text/json_text.h"
#include "weights/json.h"

namespace eider::server {
namespace {

/// The calls of an assistant's message: {"id", "type": "function", "function": {"name", "arguments"}}.
Json read_tool_calls(const Json& calls, const std::string& place, Problem& problem) {
  Json result = Json::array();
  for (std::size_t i = 0; i < calls.size(); ++i) {
    Fields call(calls[i], fmt::format("{}[{}]", place, i), problem);
    call.choice("type", {"function"});
    call.ignore({"index"});
    const auto id = call.string("id");
    call.require("function");
    if (const Json* function = call.object("function")) {
      Fields members(*function, call.path("function"), problem);
      members.require("name");
      const std::string name = members.string("name").value_or("");
      const std::string arguments = members.string("arguments").value_or("{}");
      members.finish();
      result.push_back({{"id", id.value_or("")},
                        {"type", "function"},
                        {"function", {{"name", name}, {"arguments", arguments_object(arguments)}}}});
    }
    call.finish();
  }
  return result;
}

Json read_message(const Json& source, const std::string& place, Problem& problem) {
  Fields fields(source, place, problem);
  fields.require("role");
  constexpr const char* kRoles[] = {"system", "developer", "user", "assistant", "tool"};
  const auto role = fields.choice("role", {"system", "developer", "user", "assistant", "tool"});
  std::string role_name = role ? kRoles[*role] : "user";
  if (role_name == "developer") role_name = "system";  // templates know the older word
  Json message = {{"role", role_name}};
  const auto content = read_text_content(fields, "content", {"text"});
  message["content"] = content.value_or("");
  if (const auto reasoning = fields.string("reasoning_content")) message["reasoning_content"] = *reasoning;
  if (const auto name = fields.string("name")) message["name"] = *name;
  if (const auto id = fields.string("tool_call_id")) message["tool_call_id"] = *id;
  const Json* calls = fields.array("tool_calls");
  if (calls != nullptr && !calls->empty())
    message["tool_calls"] = read_tool_calls(*calls, fields.path("tool_calls"), problem);
  if (role_name != "assistant" && !content) fields.require("content");
  fields.ignore({"refusal", "annotations", "seed"});  // of answers that clients send back
  fields.refuse({"audio", "function_call"}, "is not supported");
  fields.finish();
  return message;
}

void read_tool_choice(Fields& fields, Chat& chat) {
  const Json* choice = fields.value("tool_choice");
  if (choice == nullptr) return;
  if (choice->is_string()) {
    using Kind = ToolChoice::Kind;
    constexpr Kind kKinds[] = {Kind::kAuto, Kind::kNone, Kind::kAny};
    if (const auto kind = fields.choice("tool_choice", {"auto", "none", "required"}))
      chat.tool_choice = {kKinds[*kind]};
    return;
  }
  Fields object(*choice, fields.path("tool_choice"), fields.problem());
  object.choice("type", {"function"});
  // Chat completions name the function in an object of its own, responses beside the type.
  std::optional<std::string> name = object.string("name");
  if (const Json* function = object.object("function")) {
    Fields members(*function, object.path("function"), fields.problem());
    name = members.string("name");
    members.finish();
  }
  if (!name) return object.fail("name", "is required");
  object.finish();
  chat.tool_choice = {ToolChoice::Kind::kOne, *name};
}

bool has_tool(const Json& tools, const std::string& name) {
  return std::ranges::any_of(tools, [&](const Json& tool) { return tool["function"]["name"] == name; });
}

/// Messages whose calls' arguments are JSON text: some templates print them as they are.
Json with_argument_texts(Json messages) {
  for (Json& message : messages)
    if (message.contains("tool_calls"))
      for (Json& call : message["tool_calls"])
        if (Json& arguments = call["function"]["arguments"]; !arguments.is_string())
          arguments = to_json_text(arguments);
  return messages;
}

Result<std::string> render(const Context& context, const Chat& chat) {
  Json conversation = {{"messages", chat.messages}};
  if (!chat.tools.empty() && chat.tool_choice.kind != ToolChoice::Kind::kNone)
    conversation["tools"] = chat.tools;
  Result<std::string> text = context.render(conversation, chat.variables);
  if (text.ok()) return text;
  conversation["messages"] = with_argument_texts(chat.messages);
  if (conversation["messages"] == chat.messages) return text;
  return context.render(conversation, chat.variables);
}

/// What the prompt ends with where the answer must be a call.
std::string forced_beginning(const Context& context, const Chat& chat, Problem& problem) {
  using Kind = ToolChoice::Kind;
  if (chat.tool_choice.kind == Kind::kAuto || chat.tool_choice.kind == Kind::kNone) return {};
  const ToolFormat* format = context.tool_format;
  if (chat.tools.empty())
    problem.add("tool_choice", "tool_choice: there are no tools to choose from");
  else if (format == nullptr)
    problem.add("tool_choice",
                "tool_choice: the calls of this model's chat template are not known, so none can be forced",
                "unsupported");
  else if (chat.tool_choice.kind == Kind::kAny)
    return std::string(format->force_any);
  else if (!has_tool(chat.tools, chat.tool_choice.name))
    problem.add("tool_choice", "tool_choice: names a tool that is not among tools");
  else
    return fmt::format("{}{}{}", format->force_one, chat.tool_choice.name, format->force_arguments);
  return {};
}

}  // namespace

std::optional<std::string> read_text_content(Fields& message, std::string_view key,
                                             std::initializer_list<std::string_view> types) {
  const Json* content = message.value(key);
  if (content == nullptr || content->is_string()) return message.string(key);
  if (!content->is_array()) {
    message.fail(key, "must be a string or an array of text parts");
    return std::nullopt;
  }
  std::string text;
  for (std::size_t i = 0; i < content->size(); ++i) {
    Fields part((*content)[i], fmt::format("{}[{}]", message.path(key), i), message.problem());
    part.require("type");
    if (!part.choice("type", types)) return std::nullopt;
    part.require("text");
    text += part.string("text").value_or("");
    part.ignore({"annotations", "logprobs", "cache_control", "citations", "prompt_cache_breakpoint"});
    part.finish();
  }
  return text;
}

Json arguments_object(const std::string& text) {
  Result<Json> parsed = parse_json_in_order(text);
  if (parsed.ok() && parsed->is_object()) return std::move(parsed).value();
  return text;
}

Json read_function(Fields& function, std::string_view parameters_key) {
  function.require("name");
  const std::string name = function.string("name").value_or("");
  const std::string description = function.string("description").value_or("");
  const Json* parameters = function.object(parameters_key);
  // Forcing arguments into their schema is another matter; `strict` asks for it.
  if (function.boolean("strict").value_or(false)) function.fail("strict", "is not built yet", "unsupported");
  return {
      {"type", "function"},
      {"function",
       {{"name", name},
        {"description", description},
        {"parameters",
         parameters != nullptr ? *parameters : Json{{"type", "object"}, {"properties", Json::object()}}}}}};
}

void read_chat_messages(Fields& fields, Chat& chat) {
  fields.require("messages");
  const Json* messages = fields.array("messages");
  if (messages == nullptr) return;
  if (messages->empty()) fields.fail("messages", "must have at least one message");
  for (std::size_t i = 0; i < messages->size(); ++i)
    chat.messages.push_back(
        read_message((*messages)[i], fields.path(fmt::format("messages[{}]", i)), fields.problem()));
}

void read_chat_tools(Fields& fields, Chat& chat) {
  if (const Json* tools = fields.array("tools")) {
    for (std::size_t i = 0; i < tools->size(); ++i) {
      Fields tool((*tools)[i], fields.path(fmt::format("tools[{}]", i)), fields.problem());
      tool.require("type");
      tool.choice("type", {"function"});
      if (const Json* function = tool.object("function")) {
        Fields members(*function, tool.path("function"), fields.problem());
        chat.tools.push_back(read_function(members, "parameters"));
        members.finish();
      } else {  // as /v1/responses has it
        chat.tools.push_back(read_function(tool, "parameters"));
      }
      tool.finish();
    }
  }
  read_tool_choice(fields, chat);
  chat.single_call = !fields.boolean("parallel_tool_calls").value_or(true);
}

void read_template_variables(Fields& fields, Chat& chat) {
  if (const Json* variables = fields.object("chat_template_kwargs")) chat.variables.update(*variables);
}

void set_reasoning_effort(const std::string& effort, Chat& chat) {
  chat.variables["reasoning_effort"] = effort;
  if (effort == "none") chat.variables["enable_thinking"] = false;
}

std::optional<ChatPrompt> prepare_chat(const Context& context, const Chat& chat,
                                       const std::optional<std::string>& scope, Problem& problem) {
  if (!context.render)
    problem.add("messages", "messages: this model has no chat template; use /v1/completions");
  const std::string forced = forced_beginning(context, chat, problem);
  if (!problem.none()) return std::nullopt;
  Result<std::string> text = render(context, chat);
  if (!text.ok()) {
    problem.add("messages",
                fmt::format("messages: the chat template refuses them: {}", text.error().message()));
    return std::nullopt;
  }
  ChatPrompt prompt;
  prompt.beginning.thought = thought_opened_by(*text);
  prompt.beginning.forced = forced;
  prompt.beginning.single_call = chat.single_call;
  if (prompt.beginning.thought != nullptr && !forced.empty()) {  // nothing is left to think about
    *text += fmt::format("\n{}\n\n", prompt.beginning.thought->close);
    prompt.beginning.thought = nullptr;
  }
  const bool with_tools = !chat.tools.empty() && chat.tool_choice.kind != ToolChoice::Kind::kNone;
  if (with_tools || (context.tool_format != nullptr && context.tool_format->frames_text)) {
    prompt.beginning.tools = context.tool_format;
    prompt.beginning.text_parameters = std::make_shared<const TextParameters>(text_parameters_of(chat.tools));
  }
  prompt.text = std::move(*text) + forced;
  if (scope)
    prompt.conversation = context.prompts->find(*scope, *context.tokenizer, prompt.text);
  else
    prompt.conversation.set_prompt(*context.tokenizer, prompt.text);
  if (prompt.conversation.ids().empty()) {
    problem.add("messages", "messages: the prompt is empty");
    return std::nullopt;
  }
  return prompt;
}

void hold_to_json(const Context& context, const ChatPrompt& prompt, std::string_view param,
                  serving::Request& request, Problem& problem) {
  if (!prompt.beginning.forced.empty())
    return problem.add(std::string(param),
                       fmt::format("{}: an answer that tool_choice makes a call is no JSON object", param),
                       "unsupported");
  request.make_mask = make_json_mask(context.json_tokens, prompt.beginning.thought);
}

}  // namespace eider::server
