// The endpoints with a scheduler that says what a test tells it to, and replies that keep what they are sent.
#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "server/router.h"
#include "tests/text/small_vocabulary.h"
#include "text/tokenizer.h"

namespace eider::server {

/// What a client got.
class KeptReply final : public HttpReply {
 public:
  void send(HttpResponse response) override { whole = std::move(response); }
  void begin_stream(HttpResponse head) override { whole = std::move(head); }
  void write(std::string piece) override { whole.body += piece; }
  void end_stream() override { ended = true; }
  void post(std::function<void()> work) override { work(); }
  void on_disconnect(std::function<void()> work) override { gone = std::move(work); }

  Json json() const { return Json::parse(whole.body); }
  /// The data of the events, without [DONE].
  std::vector<Json> events() const {
    std::vector<Json> result;
    constexpr std::string_view kData = "data: ";
    for (std::size_t at = 0; (at = whole.body.find(kData, at)) != std::string::npos;) {
      at += kData.size();
      const std::string line = whole.body.substr(at, whole.body.find('\n', at) - at);
      if (line != "[DONE]") result.push_back(Json::parse(line));
    }
    return result;
  }

  HttpResponse whole;
  bool ended = false;
  std::function<void()> gone;
};

class FakeServer {
 public:
  /// `merges`: of tokens with more than a byte, as byte_level_vocabulary() takes them.
  explicit FakeServer(const std::string& chat_template = "<tool_call> arguments",
                      std::vector<std::string> merges = {})
      : tokenizer_(Tokenizer::create(vocabulary(std::move(merges))).value()) {
    context.model_id = "fake";
    context.version = "0";
    context.tokenizer = &tokenizer_;
    context.max_context = 1000;
    context.hidden_size = 2;
    context.tool_format = tool_format_of(chat_template);
    context.json_tokens = make_json_tokens(tokenizer_, std::ssize(tokenizer_.vocabulary().tokens));
    context.render = [this](const Json& conversation, const Json& variables) -> Result<std::string> {
      rendered = {{"conversation", conversation}, {"variables", variables}};
      if (conversation["messages"].back()["content"] == "refuse me") return error("no such role");
      std::string text;
      for (const Json& message : conversation["messages"]) text += message["content"].get<std::string>();
      return (render_messages ? text : "prompt") + prompt_end;
    };
    context.scheduler.submit = [this](serving::Request asked, serving::EventSink sink) {
      return submit(std::move(asked), sink);
    };
    context.scheduler.cancel = [this](serving::RequestId id) { cancelled.push_back(id); };
    context.scheduler.stats = [] { return serving::SchedulerStats(); };
    context.http = &http_counters;
    context.log = [this](const RequestRecord& record) { records.push_back(record); };
    context.metrics = &metrics_;
    context.responses = &responses_;
    context.prompts = &prompts_;
  }

  /// A request through the router, as far as the edge lets it.
  std::shared_ptr<KeptReply> ask(const std::string& method, const std::string& path, const std::string& body,
                                 HttpHeaders headers = {}) {
    const HttpService service = make_service(context);
    const auto reply = std::make_shared<KeptReply>();
    HttpRequest asked{method, path, std::move(headers), body, "req_1"};
    if (auto refused = service.admit(asked))
      reply->whole = std::move(*refused);
    else
      service.answer(std::move(asked), reply);
    return reply;
  }
  std::shared_ptr<KeptReply> post(const std::string& path, const Json& body) {
    return ask("POST", path, body.dump());
  }

  HttpCounters http_counters;
  Context context;
  std::vector<std::string> pieces = {"Hello", " world"};  ///< of each answer
  FinishReason reason = FinishReason::kStop;
  std::optional<std::string> stop_string;
  std::optional<serving::Refusal> refusal;
  std::string prompt_end;        ///< of what the template renders
  bool render_messages = false;  ///< their contents are the prompt, else "prompt" is
  bool silent = false;           ///< no events come

  serving::Request request;  ///< the last one
  Json rendered;
  std::vector<serving::RequestId> cancelled;
  std::vector<RequestRecord> records;

 private:
  static Vocabulary vocabulary(std::vector<std::string> merges) {
    Vocabulary result = byte_level_vocabulary(std::move(merges));
    result.eos = add_token(result, "<|end|>", TokenType::kControl);
    return result;
  }

  std::variant<serving::RequestId, serving::Refusal> submit(serving::Request asked,
                                                            const serving::EventSink& sink) {
    request = asked;
    if (refusal) return *refusal;
    if (silent) return serving::RequestId{7};
    sink(serving::Started{3, 42, 0.5});
    if (asked.embedding) {
      sink(serving::Embedded{{3, 4}, static_cast<std::int64_t>(asked.prompt.size()), 0, 0});
      return serving::RequestId{7};
    }
    for (const std::string& piece : pieces)
      for (std::int64_t choice = 0; choice < asked.choices; ++choice) sink(delta_of(asked, piece, choice));
    for (std::int64_t choice = 0; choice < asked.choices; ++choice) {
      serving::Finished finished;
      finished.choice = choice;
      finished.reason = reason;
      finished.stop_string = stop_string;
      finished.prompt_tokens = static_cast<std::int64_t>(asked.prompt.size());
      finished.cached_tokens = 3;
      finished.completion_tokens = static_cast<std::int64_t>(pieces.size());
      sink(finished);
    }
    return serving::RequestId{7};
  }

  static serving::Delta delta_of(const serving::Request& asked, const std::string& piece,
                                 std::int64_t choice) {
    serving::Delta delta;
    delta.choice = choice;
    delta.text = piece;
    delta.id = static_cast<unsigned char>(piece.front());
    if (asked.logprobs) delta.logprob = serving::TokenLogprob{*delta.id, -0.5};
    for (std::int64_t i = 0; i < asked.top_logprobs; ++i) delta.top_logprobs.push_back({'a', -0.25});
    return delta;
  }

  Tokenizer tokenizer_;
  Metrics metrics_;
  ResponseStore responses_;
  PromptMemory prompts_;
};

}  // namespace eider::server
