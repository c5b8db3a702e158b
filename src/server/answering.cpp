#include "server/answering.h"

#include <fmt/format.h>

#include <span>
#include <utility>
#include <variant>

#include "text/json_text.h"

namespace eider::server {
namespace {

/// What the log has for a request whose client did not wait for it, as nginx calls it.
constexpr int kClientClosedRequest = 499;

/// How many of the first ids are said by the beginning of `text` as a whole, and in how many of its bytes.
std::pair<std::size_t, std::size_t> said_in(const Tokenizer& tokenizer, std::span<const TokenId> ids,
                                            std::string_view text) {
  std::size_t count = 0, bytes = 0;
  for (; count < ids.size(); ++count) {
    const std::string_view said = tokenizer.bytes(ids[count]);
    if (said.empty() || !text.substr(bytes).starts_with(said)) break;
    bytes += said.size();
  }
  return {count, bytes};
}

class Answering : public std::enable_shared_from_this<Answering> {
 public:
  Answering(const Context& context, Exchange exchange, std::int64_t choices, std::optional<ChatPrompt> chat,
            std::unique_ptr<AnswerWriter> writer)
      : context_(context),
        exchange_(std::move(exchange)),
        chat_(std::move(chat)),
        writer_(std::move(writer)),
        running_(choices) {
    for (std::int64_t i = 0; chat_ && i < choices; ++i)
      choices_.push_back({AnswerParser(chat_->beginning), {}, {}});
  }

  void leave() { client_left_ = true; }
  /// `first`: the number of the first choice of the request it is about.
  void handle(std::int64_t first, serving::Event event) {
    if (!ended_) std::visit([this, first](auto& what) { take(first, what); }, event);
  }
  /// A request was not taken.
  void refuse(const ApiError& failure) {
    if (!ended_) fail(failure);
  }
  /// The requests to cancel where something goes wrong.
  void hold(std::vector<serving::RequestId> ids) {
    ids_ = std::move(ids);
    if (failed_) cancel();
  }

 private:
  void take(std::int64_t /*first*/, serving::Started& started) {
    record_.queued_ms = started.queued_ms;
    writer_->begin(started);
  }
  void take(std::int64_t first, serving::Delta& delta);
  void take(std::int64_t first, serving::Finished& finished);
  void take(std::int64_t /*first*/, serving::Embedded& /*embedded*/) {}  // nobody here asks for one
  void take(std::int64_t /*first*/, serving::Failed& failed) { fail({500, failed.message, "", "", {}}); }

  /// What an answer to a chat has come to.
  struct Choice {
    AnswerParser parser;
    std::vector<TokenId> ids;
    std::string text;
  };

  std::string spelled(const serving::Delta& delta) const;
  void remember(const Choice& choice, bool cut) const;
  void fail(const ApiError& failure);
  void cancel() const {
    for (const serving::RequestId id : ids_) context_.scheduler.cancel(id);
  }
  void finish_record(int status, std::string reason);

  const Context& context_;
  Exchange exchange_;
  std::optional<ChatPrompt> chat_;
  std::unique_ptr<AnswerWriter> writer_;
  std::vector<Choice> choices_;  // empty where text is not taken apart
  std::int64_t running_;         // choices that have not ended
  Usage usage_;
  RequestRecord record_;
  std::vector<serving::RequestId> ids_;
  bool ended_ = false, failed_ = false, client_left_ = false;
};

/// The token's text, and control tokens as they are spelled where the format of tool calls is made of them.
std::string Answering::spelled(const serving::Delta& delta) const {
  const ToolFormat* format = chat_->beginning.tools;
  if (!delta.id || format == nullptr || !context_.tokenizer->bytes(*delta.id).empty()) return delta.text;
  const std::string_view piece = context_.tokenizer->piece(*delta.id);
  return format->has_mark(piece) ? delta.text + std::string(piece) : delta.text;
}

void Answering::take(std::int64_t first, serving::Delta& delta) {
  delta.choice += first;
  std::vector<AnswerPart> parts;
  if (chat_) {
    Choice& choice = choices_[static_cast<std::size_t>(delta.choice)];
    const std::string text = spelled(delta);
    choice.text += text;
    if (delta.id) choice.ids.push_back(*delta.id);
    parts = choice.parser.push(text);
  } else if (!delta.text.empty()) {
    parts.push_back({AnswerPart::Kind::kText, delta.text});
  }
  writer_->token(delta.choice, parts, delta);
}

void Answering::take(std::int64_t first, serving::Finished& finished) {
  if (finished.choice == 0) {  // a request's choices share its prompt
    usage_.prompt_tokens += finished.prompt_tokens;
    usage_.cached_tokens += finished.cached_tokens;
  }
  finished.choice += first;
  usage_.completion_tokens += finished.completion_tokens;
  record_.queued_ms = finished.queued_ms;
  record_.ttft_ms = finished.ttft_ms;
  record_.tpot_ms = finished.tpot_ms;
  ChoiceEnd end{finished.reason, finished.stop_string, false};
  if (finished.reason == FinishReason::kCancelled)
    return fail(client_left_ ? ApiError{kClientClosedRequest, "the client left", "", "client_left", {}}
                             : ApiError{503, "the server is shutting down", "", "shutting_down", 1});
  if (chat_) {
    Choice& choice = choices_[static_cast<std::size_t>(finished.choice)];
    const std::vector<AnswerPart> parts = choice.parser.finish();
    end.called_tools = choice.parser.tool_calls() > 0;
    remember(choice, finished.stop_string.has_value());
    serving::Delta rest;
    rest.choice = finished.choice;
    if (!parts.empty()) writer_->token(finished.choice, parts, rest);
  }
  writer_->finish_choice(finished.choice, end);
  if (--running_ > 0) return;
  writer_->end(usage_);
  finish_record(200, finish_reason_name(finished.reason));
}

/// For the next turn, which brings the answer's text: its ids are these. `cut`: by a stop string, of which
/// the text has nothing but the ids have all.
void Answering::remember(const Choice& choice, bool cut) const {
  if (choice.ids.empty()) return;
  Conversation conversation = chat_->conversation;
  if (cut) {
    const auto [ids, bytes] = said_in(*context_.tokenizer, choice.ids, choice.text);
    if (ids == 0) return;
    conversation.append(std::span(choice.ids).first(ids), choice.text.substr(0, bytes));
  } else {
    conversation.append_answer(*context_.tokenizer, choice.ids, choice.text);
  }
  context_.prompts->keep(exchange_.scope, std::move(conversation));
}

void Answering::fail(const ApiError& failure) {
  failed_ = true;
  cancel();  // the others
  writer_->fail(failure);
  record_.problem = failure.code.empty() ? "failed" : failure.code;
  finish_record(failure.status, "");
}

void Answering::finish_record(int status, std::string reason) {
  ended_ = true;
  record_.status = status;
  record_.prompt_tokens = usage_.prompt_tokens;
  record_.cached_tokens = usage_.cached_tokens;
  record_.completion_tokens = usage_.completion_tokens;
  record_.finish_reason = std::move(reason);
  record(context_, exchange_, record_);
}

}  // namespace

void answer(const Context& context, Exchange exchange, std::vector<serving::Request> requests,
            std::optional<ChatPrompt> chat, std::unique_ptr<AnswerWriter> writer) {
  const auto reply = exchange.reply;
  std::int64_t choices = 0;
  for (const serving::Request& request : requests) choices += request.choices;
  const auto answering =
      std::make_shared<Answering>(context, std::move(exchange), choices, std::move(chat), std::move(writer));
  std::vector<serving::RequestId> ids;
  std::int64_t first = 0;
  for (serving::Request& request : requests) {
    const std::int64_t begin = std::exchange(first, first + request.choices);
    auto submitted =
        context.scheduler.submit(std::move(request), [answering, reply, begin](serving::Event event) {
          reply->post([answering, begin, event = std::move(event)]() mutable {
            answering->handle(begin, std::move(event));
          });
        });
    if (const auto* refusal = std::get_if<serving::Refusal>(&submitted)) {
      reply->post([answering, failure = to_api_error(*refusal)] { answering->refuse(failure); });
      break;
    }
    ids.push_back(std::get<serving::RequestId>(submitted));
  }
  reply->post([answering, ids] { answering->hold(ids); });
  reply->on_disconnect([weak = std::weak_ptr(answering), cancel = context.scheduler.cancel, ids] {
    if (const auto left = weak.lock()) left->leave();
    for (const serving::RequestId id : ids) cancel(id);
  });
}

const char* openai_finish_reason(const ChoiceEnd& end) {
  if (end.reason != FinishReason::kStop) return "length";
  return end.called_tools ? "tool_calls" : "stop";
}

Json openai_usage(const Usage& usage) {
  return {{"prompt_tokens", usage.prompt_tokens},
          {"completion_tokens", usage.completion_tokens},
          {"total_tokens", usage.prompt_tokens + usage.completion_tokens},
          {"prompt_tokens_details", {{"cached_tokens", usage.cached_tokens}}}};
}

void EventStream::begin() {
  if (std::exchange(begun_, true)) return;
  HttpResponse head;
  head.content_type = "text/event-stream; charset=utf-8";
  head.headers = {{"cache-control", "no-cache"}, {"x-accel-buffering", "no"}};
  reply_->begin_stream(std::move(head));
}

void EventStream::data(const Json& value) {
  raw_data(to_json_text(value));
}

void EventStream::event(std::string_view name, const Json& value) {
  reply_->write(fmt::format("event: {}\ndata: {}\n\n", name, to_json_text(value)));
}

void EventStream::raw_data(std::string_view text) {
  reply_->write(fmt::format("data: {}\n\n", text));
}

}  // namespace eider::server
