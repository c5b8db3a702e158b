// Answering: takes a request's events from the scheduler to the client: on the connections' thread, taken
// apart into parts, in the shape of the endpoint that asked.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "server/answer_parser.h"
#include "server/chat_prompt.h"
#include "server/context.h"
#include "serving/request.h"

namespace eider::server {

struct Usage {
  std::int64_t prompt_tokens = 0;
  std::int64_t cached_tokens = 0;  ///< of these
  std::int64_t completion_tokens = 0;
};

struct ChoiceEnd {
  FinishReason reason = FinishReason::kStop;
  std::optional<std::string> stop_string;
  bool called_tools = false;
};

/// The shape of an endpoint's answers. Calls come in order: begin, any of token and finish_choice, end; fail
/// may take the place of any of them and is the last.
class AnswerWriter {
 public:
  virtual ~AnswerWriter() = default;

  /// Once for each request.
  virtual void begin(const serving::Started& started) = 0;
  /// One sampled token, or text without one; `parts` may be empty.
  virtual void token(std::int64_t choice, const std::vector<AnswerPart>& parts,
                     const serving::Delta& delta) = 0;
  virtual void finish_choice(std::int64_t choice, const ChoiceEnd& end) = 0;
  virtual void end(const Usage& usage) = 0;
  /// Once streaming has begun, in the middle of it.
  virtual void fail(const ApiError& failure) = 0;
};

/// Submits the requests, whose answers go to `writer`, or answers with the refusal of one. A client that
/// leaves cancels them. Their choices are numbered through, the first request's first. `chat`: what they
/// answer; nothing: their text is not taken apart.
void answer(const Context& context, Exchange exchange, std::vector<serving::Request> requests,
            std::optional<ChatPrompt> chat, std::unique_ptr<AnswerWriter> writer);

/// "stop", "length" or "tool_calls", as chat completions and completions say it.
const char* openai_finish_reason(const ChoiceEnd& end);
Json openai_usage(const Usage& usage);

/// Server-sent events to one client.
class EventStream {
 public:
  explicit EventStream(std::shared_ptr<HttpReply> reply) : reply_(std::move(reply)) {}

  void begin();
  bool begun() const { return begun_; }
  void data(const Json& value);
  void event(std::string_view name, const Json& value);
  /// Text that is no JSON: "[DONE]".
  void raw_data(std::string_view text);
  void end() { reply_->end_stream(); }

 private:
  std::shared_ptr<HttpReply> reply_;
  bool begun_ = false;
};

}  // namespace eider::server
