#include "server/response_writer.h"

#include <utility>

#include "server/logprobs.h"
#include "text/json_text.h"

namespace eider::server {

ResponseWriter::ResponseWriter(const Context& context, const Exchange& exchange, std::string id, bool stream,
                               Json echo, std::function<void(const Json& output)> completed)
    : context_(context),
      reply_(exchange.reply),
      request_id_(exchange.request.id),
      events_(exchange.reply),
      stream_(stream),
      completed_(std::move(completed)) {
  response_ = {{"id", std::move(id)},       {"object", "response"},    {"created_at", unix_seconds()},
               {"status", "in_progress"},   {"error", nullptr},        {"incomplete_details", nullptr},
               {"model", context.model_id}, {"output", Json::array()}, {"usage", nullptr}};
  response_.update(echo);
}

void ResponseWriter::event(const char* type, Json members) {
  if (!stream_) return;
  Json value = {{"type", type}, {"sequence_number", sequence_number_++}};
  value.update(members);
  events_.event(type, value);
}

void ResponseWriter::begin(const serving::Started& started) {
  response_["seed"] = started.seed;
  if (!stream_) return;
  events_.begin();
  event("response.created", {{"response", response_}});
  event("response.in_progress", {{"response", response_}});
}

void ResponseWriter::token(std::int64_t /*choice*/, const std::vector<AnswerPart>& parts,
                           const serving::Delta& delta) {
  if (delta.logprob) logprobs_.push_back(logprob_entry(*context_.tokenizer, delta));
  for (const AnswerPart& part : parts) add(part);
}

/// What an event says of the item it is about.
Json ResponseWriter::place() {
  return {{"item_id", item()["id"]}, {"output_index", index()}};
}

void ResponseWriter::add(const AnswerPart& part) {
  if (part.kind == Kind::kToolCall) return begin_item(part.kind, part.text);
  const Kind kind = part.kind == Kind::kToolArguments ? Kind::kToolCall : part.kind;
  if (open_ != kind) begin_item(kind, "");
  text_ += part.text;
  if (!stream_) return;
  Json delta = place();
  delta["delta"] = part.text;
  if (kind != Kind::kToolCall) delta["content_index"] = 0;
  if (kind == Kind::kText) delta["logprobs"] = std::exchange(logprobs_, Json::array());
  event(kind == Kind::kText        ? "response.output_text.delta"
        : kind == Kind::kReasoning ? "response.reasoning_text.delta"
                                   : "response.function_call_arguments.delta",
        std::move(delta));
}

void ResponseWriter::begin_item(Kind kind, const std::string& tool_name) {
  end_item();
  open_ = kind;
  Json item;
  if (kind == Kind::kText)
    item = {{"type", "message"},
            {"id", new_id("msg_")},
            {"status", "in_progress"},
            {"role", "assistant"},
            {"content", Json::array()}};
  else if (kind == Kind::kReasoning)
    item = {
        {"type", "reasoning"}, {"id", new_id("rs_")}, {"summary", Json::array()}, {"content", Json::array()}};
  else
    item = {{"type", "function_call"}, {"id", new_id("fc_")}, {"call_id", new_id("", 9)},
            {"name", tool_name},       {"arguments", ""},     {"status", "in_progress"}};
  response_["output"].push_back(item);
  event("response.output_item.added", {{"output_index", index()}, {"item", std::move(item)}});
  if (kind == Kind::kText)
    begin_content(
        {{"type", "output_text"}, {"text", ""}, {"annotations", Json::array()}, {"logprobs", Json::array()}});
  if (kind == Kind::kReasoning) begin_content({{"type", "reasoning_text"}, {"text", ""}});
}

void ResponseWriter::begin_content(const Json& part) {
  Json members = place();
  members["content_index"] = 0;
  members["part"] = part;
  event("response.content_part.added", std::move(members));
}

void ResponseWriter::end_content(const Json& part) {
  item()["content"].push_back(part);
  Json members = place();
  members["content_index"] = 0;
  members["part"] = part;
  event("response.content_part.done", std::move(members));
}

void ResponseWriter::end_item() {
  if (!open_) return;
  const Kind kind = *std::exchange(open_, std::nullopt);
  std::string text = std::exchange(text_, {});
  Json done = place();
  if (kind == Kind::kToolCall) {
    item()["arguments"] = text;
    done["name"] = item()["name"];
    done["arguments"] = text;
    event("response.function_call_arguments.done", std::move(done));
  } else {
    done["content_index"] = 0;
    done["text"] = text;
    if (kind == Kind::kText) {
      done["logprobs"] = Json::array();
      event("response.output_text.done", std::move(done));
      end_content({{"type", "output_text"},
                   {"text", text},
                   {"annotations", Json::array()},
                   {"logprobs", std::exchange(logprobs_, Json::array())}});
    } else {
      event("response.reasoning_text.done", std::move(done));
      end_content({{"type", "reasoning_text"}, {"text", text}});
    }
  }
  if (item().contains("status")) item()["status"] = incomplete_ ? "incomplete" : "completed";
  event("response.output_item.done", {{"output_index", index()}, {"item", item()}});
}

void ResponseWriter::finish_choice(std::int64_t /*choice*/, const ChoiceEnd& end) {
  incomplete_ = end.reason != FinishReason::kStop;
  end_item();
  response_["status"] = incomplete_ ? "incomplete" : "completed";
  if (incomplete_) response_["incomplete_details"] = {{"reason", "max_output_tokens"}};
}

void ResponseWriter::end(const Usage& usage) {
  response_["usage"] = {
      {"input_tokens", usage.prompt_tokens},
      {"input_tokens_details", {{"cached_tokens", usage.cached_tokens}, {"cache_write_tokens", 0}}},
      {"output_tokens", usage.completion_tokens},
      {"output_tokens_details", {{"reasoning_tokens", 0}}},
      {"total_tokens", usage.prompt_tokens + usage.completion_tokens}};
  completed_(response_["output"]);
  if (!stream_) {
    HttpResponse response;
    response.body = to_json_text(response_);
    return reply_->send(std::move(response));
  }
  event(incomplete_ ? "response.incomplete" : "response.completed", {{"response", response_}});
  events_.end();
}

void ResponseWriter::fail(const ApiError& failure) {
  if (!events_.begun()) return reply_->send(error_response(failure, ErrorShape::kOpenAi, request_id_));
  response_["status"] = "failed";
  response_["error"] = {{"code", "server_error"}, {"message", failure.message}};
  event("response.failed", {{"response", response_}});
  events_.end();
}

}  // namespace eider::server
