// ResponseWriter: answers in the shape of /v1/responses: output items, and where they stream an event for
// each step.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "server/answering.h"
#include "server/context.h"

namespace eider::server {

class ResponseWriter final : public AnswerWriter {
 public:
  /// `echo`: members of the response that repeat the request. `completed` is told the output items once they
  /// are all there.
  ResponseWriter(const Context& context, const Exchange& exchange, std::string id, bool stream, Json echo,
                 std::function<void(const Json& output)> completed);

  void begin(const serving::Started& started) override;
  void token(std::int64_t choice, const std::vector<AnswerPart>& parts, const serving::Delta& delta) override;
  void finish_choice(std::int64_t choice, const ChoiceEnd& end) override;
  void end(const Usage& usage) override;
  void fail(const ApiError& failure) override;

 private:
  using Kind = AnswerPart::Kind;

  void event(const char* type, Json members);
  void add(const AnswerPart& part);
  void begin_item(Kind kind, const std::string& tool_name);
  void end_item();
  void begin_content(const Json& part);
  void end_content(const Json& part);
  std::size_t index() const { return response_["output"].size() - 1; }
  Json& item() { return response_["output"].back(); }
  Json place();

  const Context& context_;
  std::shared_ptr<HttpReply> reply_;
  std::string request_id_;
  EventStream events_;
  bool stream_;
  std::function<void(const Json& output)> completed_;
  Json response_;
  std::int64_t sequence_number_ = 0;
  std::optional<Kind> open_;  // of the last item, until it ends
  std::string text_;          // of that item
  Json logprobs_ = Json::array();
  bool incomplete_ = false;
};

}  // namespace eider::server
