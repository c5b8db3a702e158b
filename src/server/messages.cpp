// POST /v1/messages and /v1/messages/count_tokens: https://docs.anthropic.com/en/api/messages
#include <fmt/format.h>

#include <utility>

#include "server/answering.h"
#include "server/chat_prompt.h"
#include "server/endpoints.h"
#include "server/generation_fields.h"
#include "text/json_text.h"

namespace eider::server {
namespace {

using Kind = AnswerPart::Kind;

/// One message's blocks, as messages of chat completions: results of tools become messages of their own.
class BlockReader {
 public:
  BlockReader(std::string role, std::string place, Problem& problem)
      : role_(std::move(role)), place_(std::move(place)), problem_(problem) {}

  void read(const Json& blocks, Json& messages) {
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      Fields block(blocks[i], fmt::format("{}[{}]", place_, i), problem_);
      block.require("type");
      read_block(block, messages);
      block.ignore({"cache_control", "citations", "caller"});
      block.finish();
    }
    if (text_.empty() && calls_.empty() && (gave_results_ || blocks.empty())) return;
    Json message = {{"role", role_}, {"content", text_}};
    if (!reasoning_.empty()) message["reasoning_content"] = reasoning_;
    if (!calls_.empty()) message["tool_calls"] = calls_;
    messages.push_back(std::move(message));
  }

 private:
  void read_block(Fields& block, Json& messages) {
    const auto type =
        block.choice("type", {"text", "tool_use", "tool_result", "thinking", "redacted_thinking"});
    if (!type) return;
    if (*type == 0) {
      block.require("text");
      text_ += block.string("text").value_or("");
    } else if (*type == 1) {
      block.require("name");
      const Json* input = block.object("input");
      calls_.push_back({{"id", block.string("id").value_or("")},
                        {"type", "function"},
                        {"function",
                         {{"name", block.string("name").value_or("")},
                          {"arguments", input != nullptr ? *input : Json::object()}}}});
    } else if (*type == 2) {
      block.require("tool_use_id");
      const std::string id = block.string("tool_use_id").value_or("");
      const std::string content = read_text_content(block, "content", {"text"}).value_or("");
      block.boolean("is_error");
      messages.push_back({{"role", "tool"}, {"tool_call_id", id}, {"content", content}});
      gave_results_ = true;
    } else if (*type == 3) {
      reasoning_ += block.string("thinking").value_or("");
      block.ignore({"signature"});
    } else {
      block.ignore({"data"});
    }
  }

  std::string role_, place_;
  Problem& problem_;
  std::string text_, reasoning_;
  Json calls_ = Json::array();
  bool gave_results_ = false;
};

void read_messages(Fields& fields, Chat& chat) {
  if (const auto system = read_text_content(fields, "system", {"text"}); system && !system->empty())
    chat.messages.push_back({{"role", "system"}, {"content", *system}});
  fields.require("messages");
  const Json* messages = fields.array("messages");
  if (messages == nullptr) return;
  if (messages->empty()) fields.fail("messages", "must have at least one message");
  for (std::size_t i = 0; i < messages->size(); ++i) {
    Fields message((*messages)[i], fmt::format("messages[{}]", i), fields.problem());
    message.require("role");
    message.require("content");
    constexpr const char* kRoles[] = {"user", "assistant", "system"};
    const auto role = message.choice("role", {"user", "assistant", "system"});
    const std::string role_name = role ? kRoles[*role] : "user";
    const Json* content = message.value("content");
    if (content != nullptr && content->is_array())
      BlockReader(role_name, message.path("content"), fields.problem()).read(*content, chat.messages);
    else
      chat.messages.push_back({{"role", role_name}, {"content", message.string("content").value_or("")}});
    message.finish();
  }
}

void read_tools(Fields& fields, Chat& chat) {
  if (const Json* tools = fields.array("tools")) {
    for (std::size_t i = 0; i < tools->size(); ++i) {
      Fields tool((*tools)[i], fmt::format("tools[{}]", i), fields.problem());
      tool.choice("type", {"custom"});
      chat.tools.push_back(read_function(tool, "input_schema"));
      tool.ignore({"cache_control", "eager_input_streaming", "input_examples"});
      tool.finish();
    }
  }
  const Json* choice = fields.object("tool_choice");
  if (choice == nullptr) return;
  using Choice = ToolChoice::Kind;
  constexpr Choice kKinds[] = {Choice::kAuto, Choice::kNone, Choice::kAny, Choice::kOne};
  Fields inner(*choice, "tool_choice", fields.problem());
  inner.require("type");
  if (const auto kind = inner.choice("type", {"auto", "none", "any", "tool"}))
    chat.tool_choice.kind = kKinds[*kind];
  if (chat.tool_choice.kind == Choice::kOne) {
    inner.require("name");
    chat.tool_choice.name = inner.string("name").value_or("");
  }
  chat.single_call = inner.boolean("disable_parallel_tool_use").value_or(false);
  inner.finish();
}

void read_thinking(Fields& fields, Chat& chat) {
  const Json* thinking = fields.object("thinking");
  if (thinking == nullptr) return;
  Fields inner(*thinking, "thinking", fields.problem());
  inner.require("type");
  const auto type = inner.choice("type", {"enabled", "disabled", "adaptive"});
  if (type && *type != 2) chat.variables["enable_thinking"] = *type == 0;
  inner.ignore({"budget_tokens", "display"});
  inner.finish();
}

/// What both endpoints take.
Chat read_chat(Fields& fields) {
  Chat chat;
  read_model(fields);
  read_messages(fields, chat);
  read_tools(fields, chat);
  read_thinking(fields, chat);
  read_template_variables(fields, chat);
  fields.ignore({"cache_control"});
  return chat;
}

Json usage_object(const Usage& usage) {
  return {{"input_tokens", usage.prompt_tokens - usage.cached_tokens},
          {"cache_creation_input_tokens", 0},
          {"cache_read_input_tokens", usage.cached_tokens},
          {"output_tokens", usage.completion_tokens}};
}

const char* stop_reason(const ChoiceEnd& end) {
  if (end.reason != FinishReason::kStop) return "max_tokens";
  if (end.stop_string) return "stop_sequence";
  return end.called_tools ? "tool_use" : "end_turn";
}

/// Builds the message's content, and where it streams tells of each step.
class MessageWriter final : public AnswerWriter {
 public:
  MessageWriter(const Context& context, const Exchange& exchange, bool stream, std::int64_t prompt_tokens)
      : reply_(exchange.reply),
        request_id_(exchange.request.id),
        events_(exchange.reply),
        stream_(stream),
        prompt_tokens_(prompt_tokens) {
    message_ = {{"id", new_id("msg_")},      {"type", "message"},        {"role", "assistant"},
                {"model", context.model_id}, {"content", Json::array()}, {"stop_reason", nullptr},
                {"stop_sequence", nullptr}};
  }

  void begin(const serving::Started& started) override {
    if (!stream_) return;
    events_.begin();
    message_["usage"] = usage_object({prompt_tokens_, started.cached_tokens, 0});
    event("message_start", {{"message", message_}});
  }

  void token(std::int64_t /*choice*/, const std::vector<AnswerPart>& parts,
             const serving::Delta& /*delta*/) override {
    for (const AnswerPart& part : parts) add(part);
  }

  void finish_choice(std::int64_t /*choice*/, const ChoiceEnd& end) override {
    end_block();
    message_["stop_reason"] = stop_reason(end);
    if (end.stop_string) message_["stop_sequence"] = *end.stop_string;
  }

  void end(const Usage& usage) override {
    message_["usage"] = usage_object(usage);
    if (!stream_) {
      HttpResponse response;
      response.body = to_json_text(message_);
      return reply_->send(std::move(response));
    }
    event(
        "message_delta",
        {{"delta", {{"stop_reason", message_["stop_reason"]}, {"stop_sequence", message_["stop_sequence"]}}},
         {"usage", message_["usage"]}});
    event("message_stop", Json::object());
    events_.end();
  }

  void fail(const ApiError& failure) override {
    if (!events_.begun()) return reply_->send(error_response(failure, ErrorShape::kAnthropic, request_id_));
    reply_->write(
        fmt::format("event: error\ndata: {}\n\n", error_text(failure, ErrorShape::kAnthropic, request_id_)));
    events_.end();
  }

 private:
  void event(const char* type, const Json& members) {
    if (!stream_) return;
    Json value = {{"type", type}};
    value.update(members);
    events_.event(type, value);
  }
  std::size_t index() const { return message_["content"].size() - 1; }

  void begin_block(Kind kind, Json block) {
    end_block();
    message_["content"].push_back(std::move(block));
    open_ = kind;
    event("content_block_start", {{"index", index()}, {"content_block", message_["content"].back()}});
  }

  void end_block() {
    if (!open_) return;
    if (*open_ == Kind::kToolCall)
      if (Json input = arguments_object(arguments_); input.is_object())  // not where the answer was cut
        message_["content"].back()["input"] = std::move(input);
    arguments_.clear();
    open_.reset();
    event("content_block_stop", {{"index", index()}});
  }

  void add(const AnswerPart& part) {
    switch (part.kind) {
      case Kind::kText:
        return add_text(part, {{"type", "text"}, {"text", ""}}, "text", "text_delta");
      case Kind::kReasoning:
        return add_text(part, {{"type", "thinking"}, {"thinking", ""}, {"signature", ""}}, "thinking",
                        "thinking_delta");
      case Kind::kToolCall:
        return begin_block(
            Kind::kToolCall,
            {{"type", "tool_use"}, {"id", new_id("toolu_")}, {"name", part.text}, {"input", Json::object()}});
      case Kind::kToolArguments:
        break;
    }
    arguments_ += part.text;
    event("content_block_delta",
          {{"index", index()}, {"delta", {{"type", "input_json_delta"}, {"partial_json", part.text}}}});
  }

  void add_text(const AnswerPart& part, Json empty_block, const char* member, const char* delta_type) {
    if (open_ != part.kind) begin_block(part.kind, std::move(empty_block));
    message_["content"].back()[member].get_ref<std::string&>() += part.text;
    event("content_block_delta",
          {{"index", index()}, {"delta", {{"type", delta_type}, {member, part.text}}}});
  }

  std::shared_ptr<HttpReply> reply_;
  std::string request_id_;
  EventStream events_;
  bool stream_;
  std::int64_t prompt_tokens_;
  Json message_;
  std::optional<Kind> open_;  // of the last block, until it ends
  std::string arguments_;     // of that block
};

}  // namespace

void messages(const Context& context, Exchange& exchange, const Json& body, Problem& problem) {
  Fields fields(body, "", problem);
  serving::Request request = default_request(context, exchange);
  const Chat chat = read_chat(fields);
  fields.require("max_tokens");
  read_max_tokens(fields, "max_tokens", request);
  read_stop(fields, "stop_sequences", request);
  read_sampling(fields, context, request);
  const bool stream = fields.boolean("stream").value_or(false);
  fields.ignore({"metadata", "service_tier", "inference_geo"});
  fields.refuse({"container", "mcp_servers", "context_management", "output_config", "output_format"},
                "is not supported");
  fields.finish();
  if (!problem.none()) return;
  std::optional<ChatPrompt> prompt = prepare_chat(context, chat, exchange.scope, problem);
  if (!prompt) return;
  request.prompt.assign(prompt->conversation.ids().begin(), prompt->conversation.ids().end());
  const auto prompt_tokens = static_cast<std::int64_t>(request.prompt.size());
  auto writer = std::make_unique<MessageWriter>(context, exchange, stream, prompt_tokens);
  answer(context, std::move(exchange), {std::move(request)}, std::move(prompt), std::move(writer));
}

Json count_tokens(const Context& context, const Json& body, Problem& problem) {
  Fields fields(body, "", problem);
  const Chat chat = read_chat(fields);
  fields.finish();
  if (!problem.none()) return {};
  const std::optional<ChatPrompt> prompt = prepare_chat(context, chat, std::nullopt, problem);
  return prompt ? Json{{"input_tokens", prompt->conversation.ids().size()}} : Json();
}

}  // namespace eider::server
