// POST /v1/chat/completions: https://platform.openai.com/docs/api-reference/chat
#include <fmt/format.h>

#include <utility>

#include "server/answering.h"
#include "server/chat_prompt.h"
#include "server/endpoints.h"
#include "server/generation_fields.h"
#include "server/logprobs.h"
#include "text/json_text.h"

namespace eider::server {
namespace {

struct ChatRequest {
  Chat chat;
  bool json_object = false;
  Streaming streaming;
};

ChatRequest read_request(Fields& fields, const Context& context, serving::Request& request) {
  ChatRequest result;
  read_model(fields);
  read_chat_messages(fields, result.chat);
  read_chat_tools(fields, result.chat);
  read_template_variables(fields, result.chat);
  if (const auto effort = fields.string("reasoning_effort")) set_reasoning_effort(*effort, result.chat);
  result.json_object = read_response_format(fields, "response_format");

  read_sampling(fields, context, request);
  read_choices(fields, request);
  read_stop(fields, "stop", request);
  read_max_tokens(fields, "max_tokens", request);
  read_max_tokens(fields, "max_completion_tokens", request);
  request.logprobs = fields.boolean("logprobs").value_or(false);
  request.top_logprobs = fields.integer("top_logprobs", 0, 20).value_or(0);
  if (request.top_logprobs > 0 && !request.logprobs) fields.fail("top_logprobs", "needs logprobs: true");

  result.streaming = read_streaming(fields);
  fields.ignore({"user", "metadata", "store", "service_tier", "safety_identifier", "prompt_cache_key",
                 "prompt_cache_retention", "prompt_cache_options", "verbosity", "cache_prompt"});
  fields.refuse({"audio", "functions", "function_call", "prediction", "web_search_options", "moderation"},
                "is not supported");
  if (const Json* modalities = fields.array("modalities");
      modalities != nullptr && *modalities != Json{"text"})
    fields.fail("modalities", "only [\"text\"] is supported", "unsupported");
  fields.finish();
  return result;
}

/// What both forms of the answer share: its id, and the seed that was drawn.
class ChatWriter : public AnswerWriter {
 public:
  ChatWriter(const Context& context, std::shared_ptr<HttpReply> reply, std::string request_id)
      : context_(context), reply_(std::move(reply)), request_id_(std::move(request_id)) {}

 protected:
  Json object(const char* type, Json choices) const {
    return {{"id", id_},
            {"object", type},
            {"created", created_},
            {"model", context_.model_id},
            {"system_fingerprint", "eider-" + context_.version},
            {"seed", seed_},
            {"choices", std::move(choices)}};
  }
  /// "call_" and more; templates of Mistral's want 9 letters and digits.
  static std::string call_id() { return new_id("", 9); }

  const Context& context_;
  std::shared_ptr<HttpReply> reply_;
  std::string request_id_;
  std::string id_ = new_id("chatcmpl-");
  std::int64_t created_ = unix_seconds();
  std::uint64_t seed_ = 0;
};

/// The answer in one piece.
class WholeChat final : public ChatWriter {
 public:
  WholeChat(const Context& context, std::shared_ptr<HttpReply> reply, std::string request_id,
            std::int64_t choices)
      : ChatWriter(context, std::move(reply), std::move(request_id)),
        choices_(static_cast<std::size_t>(choices)) {}

  void begin(const serving::Started& started) override { seed_ = started.seed; }

  void token(std::int64_t choice, const std::vector<AnswerPart>& parts,
             const serving::Delta& delta) override {
    Choice& answer = choices_[static_cast<std::size_t>(choice)];
    for (const AnswerPart& part : parts) add(part, answer);
    if (delta.logprob) answer.logprobs.push_back(logprob_entry(*context_.tokenizer, delta));
  }

  void finish_choice(std::int64_t choice, const ChoiceEnd& end) override {
    choices_[static_cast<std::size_t>(choice)].finish_reason = openai_finish_reason(end);
  }

  void end(const Usage& usage) override {
    Json choices = Json::array();
    for (Choice& choice : choices_)
      choices.push_back(render(choice, static_cast<std::int64_t>(choices.size())));
    Json body = object("chat.completion", std::move(choices));
    body["usage"] = openai_usage(usage);
    HttpResponse response;
    response.body = to_json_text(body);
    reply_->send(std::move(response));
  }

  void fail(const ApiError& failure) override {
    reply_->send(error_response(failure, ErrorShape::kOpenAi, request_id_));
  }

 private:
  struct Choice {
    std::string content, reasoning;
    Json tool_calls = Json::array();
    Json logprobs = Json::array();
    std::string finish_reason;
  };

  static void add(const AnswerPart& part, Choice& answer) {
    using Kind = AnswerPart::Kind;
    if (part.kind == Kind::kText) answer.content += part.text;
    if (part.kind == Kind::kReasoning) answer.reasoning += part.text;
    if (part.kind == Kind::kToolCall)
      answer.tool_calls.push_back(
          {{"id", call_id()}, {"type", "function"}, {"function", {{"name", part.text}, {"arguments", ""}}}});
    if (part.kind == Kind::kToolArguments)
      answer.tool_calls.back()["function"]["arguments"].get_ref<std::string&>() += part.text;
  }

  static Json render(Choice& choice, std::int64_t index) {
    Json message = {{"role", "assistant"}};
    const bool only_calls = choice.content.empty() && !choice.tool_calls.empty();
    message["content"] = only_calls ? Json() : Json(std::move(choice.content));
    message["refusal"] = nullptr;
    if (!choice.reasoning.empty()) message["reasoning_content"] = std::move(choice.reasoning);
    if (!choice.tool_calls.empty()) message["tool_calls"] = std::move(choice.tool_calls);
    Json logprobs;
    if (!choice.logprobs.empty()) logprobs = {{"content", std::move(choice.logprobs)}, {"refusal", nullptr}};
    return {{"index", index},
            {"message", std::move(message)},
            {"logprobs", std::move(logprobs)},
            {"finish_reason", choice.finish_reason}};
  }

  std::vector<Choice> choices_;
};

/// The answer as chat.completion.chunk events.
class StreamedChat final : public ChatWriter {
 public:
  StreamedChat(const Context& context, std::shared_ptr<HttpReply> reply, std::string request_id,
               std::int64_t choices, bool include_usage)
      : ChatWriter(context, reply, std::move(request_id)),
        events_(std::move(reply)),
        choices_(choices),
        include_usage_(include_usage) {}

  void begin(const serving::Started& started) override {
    seed_ = started.seed;
    events_.begin();
    for (std::int64_t i = 0; i < choices_; ++i) send(i, {{"role", "assistant"}, {"content", ""}}, {}, {});
  }

  void token(std::int64_t choice, const std::vector<AnswerPart>& parts,
             const serving::Delta& delta) override {
    Json logprobs;
    if (delta.logprob)
      logprobs = {{"content", Json::array({logprob_entry(*context_.tokenizer, delta)})},
                  {"refusal", nullptr}};
    for (const AnswerPart& part : parts) send(choice, render(part), std::exchange(logprobs, {}), {});
    if (!logprobs.is_null()) send(choice, {{"content", ""}}, std::move(logprobs), {});
  }

  void finish_choice(std::int64_t choice, const ChoiceEnd& end) override {
    send(choice, Json::object(), {}, openai_finish_reason(end));
  }

  void end(const Usage& usage) override {
    if (include_usage_) {
      Json chunk = object("chat.completion.chunk", Json::array());
      chunk["usage"] = openai_usage(usage);
      events_.data(chunk);
    }
    events_.raw_data("[DONE]");
    events_.end();
  }

  void fail(const ApiError& failure) override {
    if (!events_.begun()) return reply_->send(error_response(failure, ErrorShape::kOpenAi, request_id_));
    events_.raw_data(error_text(failure, ErrorShape::kOpenAi, request_id_));
    events_.end();
  }

 private:
  static Json render(const AnswerPart& part) {
    switch (part.kind) {
      case AnswerPart::Kind::kText:
        return {{"content", part.text}};
      case AnswerPart::Kind::kReasoning:
        return {{"reasoning_content", part.text}};
      case AnswerPart::Kind::kToolCall: {
        Json call = {{"index", part.tool_index},
                     {"id", call_id()},
                     {"type", "function"},
                     {"function", {{"name", part.text}, {"arguments", ""}}}};
        return {{"tool_calls", Json::array({std::move(call)})}};
      }
      case AnswerPart::Kind::kToolArguments:
        break;
    }
    Json call = {{"index", part.tool_index}, {"function", {{"arguments", part.text}}}};
    return {{"tool_calls", Json::array({std::move(call)})}};
  }

  void send(std::int64_t choice, Json delta, Json logprobs, std::optional<std::string> finish_reason) {
    Json entry = {{"index", choice}, {"delta", std::move(delta)}, {"logprobs", std::move(logprobs)}};
    entry["finish_reason"] = finish_reason ? Json(*finish_reason) : Json();
    events_.data(object("chat.completion.chunk", Json::array({std::move(entry)})));
  }

  EventStream events_;
  std::int64_t choices_;
  bool include_usage_;
};

}  // namespace

void chat_completions(const Context& context, Exchange& exchange, const Json& body, Problem& problem) {
  Fields fields(body, "", problem);
  serving::Request request = default_request(context, exchange);
  const ChatRequest asked = read_request(fields, context, request);
  if (!problem.none()) return;
  std::optional<ChatPrompt> prompt = prepare_chat(context, asked.chat, exchange.scope, problem);
  if (!prompt) return;
  if (asked.json_object) hold_to_json(context, *prompt, "response_format", request, problem);
  if (!problem.none()) return;
  request.prompt.assign(prompt->conversation.ids().begin(), prompt->conversation.ids().end());
  std::unique_ptr<AnswerWriter> writer;
  if (asked.streaming.on)
    writer = std::make_unique<StreamedChat>(context, exchange.reply, exchange.request.id, request.choices,
                                            asked.streaming.include_usage);
  else
    writer = std::make_unique<WholeChat>(context, exchange.reply, exchange.request.id, request.choices);
  answer(context, std::move(exchange), {std::move(request)}, std::move(prompt), std::move(writer));
}

}  // namespace eider::server
