// POST /v1/responses: https://platform.openai.com/docs/api-reference/responses
#include <fmt/format.h>

#include <utility>

#include "server/answering.h"
#include "server/chat_prompt.h"
#include "server/endpoints.h"
#include "server/generation_fields.h"
#include "server/response_writer.h"
#include "text/json_text.h"

namespace eider::server {
namespace {

/// An input item as a message of chat completions. Calls of one turn are items of their own here, but one
/// message there.
void read_item(Fields& item, Json& messages) {
  const auto type = item.choice("type", {"message", "function_call", "function_call_output", "reasoning"});
  item.ignore({"id", "status", "phase"});
  if (type == 3U) return item.ignore({"summary", "content", "encrypted_content"});
  if (type == 2U) {
    item.require("call_id");
    item.require("output");
    const std::string id = item.string("call_id").value_or("");
    const std::string output = read_text_content(item, "output", {"input_text", "output_text"}).value_or("");
    messages.push_back({{"role", "tool"}, {"tool_call_id", id}, {"content", output}});
  } else if (type == 1U) {
    item.require("name");
    Json call = {{"id", item.string("call_id").value_or("")},
                 {"type", "function"},
                 {"function",
                  {{"name", item.string("name").value_or("")},
                   {"arguments", arguments_object(item.string("arguments").value_or("{}"))}}}};
    if (messages.empty() || messages.back()["role"] != "assistant")
      messages.push_back({{"role", "assistant"}, {"content", ""}});
    messages.back()["tool_calls"].push_back(std::move(call));
  } else {
    item.require("role");
    constexpr const char* kRoles[] = {"system", "system", "user", "assistant"};
    const auto role = item.choice("role", {"system", "developer", "user", "assistant"});
    const std::string content =
        read_text_content(item, "content", {"input_text", "output_text", "text"}).value_or("");
    messages.push_back({{"role", kRoles[role.value_or(2)]}, {"content", content}});
  }
}

Json read_input(Fields& fields) {
  fields.require("input");
  Json messages = Json::array();
  const Json* input = fields.value("input");
  if (input != nullptr && input->is_string()) {
    messages.push_back({{"role", "user"}, {"content", input->get<std::string>()}});
  } else if (input != nullptr && input->is_array()) {
    for (std::size_t i = 0; i < input->size(); ++i) {
      Fields item((*input)[i], fmt::format("input[{}]", i), fields.problem());
      read_item(item, messages);
      item.finish();
    }
  } else if (input != nullptr) {
    fields.fail("input", "must be a string or an array of items");
  }
  return messages;
}

/// The conversation that previous_response_id names.
Json previous_messages(Fields& fields, const Context& context, const std::string& scope) {
  const auto id = fields.string("previous_response_id");
  if (!id) return Json::array();
  const auto kept = context.responses->get(*id, scope);
  if (kept) return parse_ordered_json(*kept);
  fields.fail("previous_response_id", "is not known here; responses are kept in memory, for a while",
              "previous_response_not_found");
  return Json::array();
}

bool read_text_format(Fields& fields) {
  const Json* text = fields.object("text");
  if (text == nullptr) return false;
  Fields inner(*text, "text", fields.problem());
  const bool json_object = read_response_format(inner, "format");
  inner.ignore({"verbosity"});
  inner.finish();
  return json_object;
}

void read_reasoning(Fields& fields, Chat& chat) {
  const Json* reasoning = fields.object("reasoning");
  if (reasoning == nullptr) return;
  Fields inner(*reasoning, "reasoning", fields.problem());
  if (const auto effort = inner.string("effort")) set_reasoning_effort(*effort, chat);
  inner.ignore({"summary", "generate_summary"});
  inner.finish();
}

/// The output as messages that the conversation goes on from.
void append_output(const Json& output, Json& messages) {
  Problem none;
  for (const Json& item : output) {
    Fields fields(item, "", none);
    read_item(fields, messages);
  }
}

}  // namespace

void responses(const Context& context, Exchange& exchange, const Json& body, Problem& problem) {
  Fields fields(body, "", problem);
  serving::Request request = default_request(context, exchange);
  Chat chat;
  read_model(fields);
  Json messages = previous_messages(fields, context, exchange.scope);
  for (Json& message : read_input(fields)) messages.push_back(std::move(message));
  // Instructions are this request's alone: they are not kept with the conversation.
  const auto instructions = fields.string("instructions");
  if (instructions) chat.messages.push_back({{"role", "system"}, {"content", *instructions}});
  for (const Json& message : messages) chat.messages.push_back(message);
  read_chat_tools(fields, chat);
  read_reasoning(fields, chat);
  read_template_variables(fields, chat);
  const bool json_object = read_text_format(fields);
  read_sampling(fields, context, request);
  read_max_tokens(fields, "max_output_tokens", request);
  request.top_logprobs = fields.integer("top_logprobs", 0, 20).value_or(0);
  const std::vector<std::string> include = fields.strings("include", 16);
  request.logprobs = std::ranges::count(include, "message.output_text.logprobs") > 0;
  const bool store = fields.boolean("store").value_or(true);
  const bool stream = read_streaming(fields).on;
  if (fields.boolean("background").value_or(false))
    fields.fail("background", "is not supported", "unsupported");
  fields.choice("truncation", {"auto", "disabled"});
  const Json* metadata = fields.object("metadata");
  fields.ignore({"user", "safety_identifier", "service_tier", "prompt_cache_key", "prompt_cache_retention",
                 "prompt_cache_options", "max_tool_calls"});
  fields.refuse({"conversation", "prompt", "context_management", "moderation", "image"}, "is not supported");
  fields.finish();
  if (!problem.none()) return;
  std::optional<ChatPrompt> prompt = prepare_chat(context, chat, exchange.scope, problem);
  if (!prompt) return;

  if (json_object) hold_to_json(context, *prompt, "text.format", request, problem);
  if (!problem.none()) return;
  request.prompt.assign(prompt->conversation.ids().begin(), prompt->conversation.ids().end());
  const auto echo_of = [&body](const char* key, Json otherwise) {
    return body.contains(key) && !body[key].is_null() ? body[key] : std::move(otherwise);
  };
  const Json echo = {{"previous_response_id", echo_of("previous_response_id", nullptr)},
                     {"instructions", echo_of("instructions", nullptr)},
                     {"parallel_tool_calls", !chat.single_call},
                     {"tool_choice", echo_of("tool_choice", "auto")},
                     {"tools", echo_of("tools", Json::array())},
                     {"temperature", request.sampling.temperature},
                     {"top_p", request.sampling.top_p},
                     {"max_output_tokens", echo_of("max_output_tokens", nullptr)},
                     {"metadata", metadata != nullptr ? *metadata : Json::object()},
                     {"store", store}};
  const std::string id = new_id("resp_");
  const auto completed = [&context, id, store, scope = exchange.scope,
                          messages = std::move(messages)](const Json& output) mutable {
    if (!store) return;
    append_output(output, messages);
    context.responses->put(id, scope, to_json_text(messages));
  };
  auto writer = std::make_unique<ResponseWriter>(context, exchange, id, stream, echo, completed);
  answer(context, std::move(exchange), {std::move(request)}, std::move(prompt), std::move(writer));
}

}  // namespace eider::server
