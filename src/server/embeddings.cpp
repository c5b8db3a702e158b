// POST /v1/embeddings: https://platform.openai.com/docs/api-reference/embeddings. An embedding is what
// the model's pooling makes of the final norm's outputs, scaled to length 1.
#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <utility>
#include <variant>

#include "server/endpoints.h"
#include "server/generation_fields.h"
#include "server/prompt_input.h"
#include "text/json_text.h"

namespace eider::server {
namespace {

constexpr std::size_t kMostInputs = 2048;  // as the API has it

/// Base64 (RFC 4648) of the values as little-endian fp32.
std::string base64(const std::vector<float>& values) {
  constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::vector<unsigned char> bytes(values.size() * sizeof(float));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t given = std::min<std::size_t>(3, bytes.size() - i);
    std::uint32_t group = 0;
    for (std::size_t j = 0; j < 3; ++j) group = group << 8U | (j < given ? bytes[i + j] : 0U);
    for (std::size_t j = 0; j < 4; ++j) text += j <= given ? kDigits[group >> (18 - 6 * j) & 63U] : '=';
  }
  return text;
}

/// The same bits everywhere: the sum of squares in double, in order.
void normalise(std::vector<float>& values) {
  double sum = 0;
  for (const float value : values) sum += static_cast<double>(value) * static_cast<double>(value);
  if (sum == 0) return;
  const double length = std::sqrt(sum);
  for (float& value : values) value = static_cast<float>(static_cast<double>(value) / length);
}

/// Asks for one input's embedding after the other, and answers with all.
class Embedding : public std::enable_shared_from_this<Embedding> {
 public:
  Embedding(const Context& context, Exchange exchange, std::vector<Prompt> inputs, bool as_base64)
      : context_(context),
        exchange_(std::move(exchange)),
        inputs_(std::move(inputs)),
        as_base64_(as_base64) {}

  /// On the connections' thread.
  void ask() {
    serving::Request request = default_request(context_, exchange_);
    request.prompt = inputs_[static_cast<std::size_t>(data_.size())].ids;
    request.embedding = true;
    auto submitted =
        context_.scheduler.submit(std::move(request), [self = shared_from_this()](serving::Event event) {
          self->exchange_.reply->post([self, event = std::move(event)]() mutable { self->handle(event); });
        });
    if (const auto* refusal = std::get_if<serving::Refusal>(&submitted)) {
      ApiError failure = to_api_error(*refusal);
      if (failure.param != "model") failure.param = "input";
      return refuse(context_, exchange_, failure);
    }
    exchange_.reply->on_disconnect(
        [cancel = context_.scheduler.cancel, id = std::get<serving::RequestId>(submitted)] { cancel(id); });
  }

 private:
  void handle(serving::Event& event) {
    if (const auto* failed = std::get_if<serving::Failed>(&event))
      return refuse(context_, exchange_, {500, failed->message, "", "", {}});
    if (std::holds_alternative<serving::Finished>(event))
      return refuse(context_, exchange_, {503, "the request was cancelled", "", "cancelled", 1});
    if (auto* embedded = std::get_if<serving::Embedded>(&event)) add(*embedded);
  }

  void add(serving::Embedded& embedded) {
    prompt_tokens_ += embedded.prompt_tokens;
    normalise(embedded.state);
    data_.push_back({{"object", "embedding"},
                     {"index", data_.size()},
                     {"embedding", as_base64_ ? Json(base64(embedded.state)) : Json(embedded.state)}});
    if (data_.size() < inputs_.size()) return ask();
    respond(context_, exchange_,
            {{"object", "list"},
             {"data", std::move(data_)},
             {"model", context_.model_id},
             {"usage", {{"prompt_tokens", prompt_tokens_}, {"total_tokens", prompt_tokens_}}}});
  }

  const Context& context_;
  Exchange exchange_;
  std::vector<Prompt> inputs_;
  bool as_base64_;
  Json data_ = Json::array();
  std::int64_t prompt_tokens_ = 0;
};

}  // namespace

void embeddings(const Context& context, Exchange& exchange, const Json& body, Problem& problem) {
  Fields fields(body, "", problem);
  read_model(fields);
  std::vector<Prompt> inputs = read_prompts(fields, "input", context, kMostInputs);
  const bool as_base64 = fields.choice("encoding_format", {"float", "base64"}) == 1U;
  if (fields.integer("dimensions", 1, INT32_MAX).value_or(context.hidden_size) != context.hidden_size)
    fields.fail("dimensions", fmt::format("this model's embeddings have {}", context.hidden_size),
                "unsupported");
  fields.ignore({"user"});
  fields.finish();
  if (!problem.none()) return;
  const auto reply = exchange.reply;
  const auto embedding =
      std::make_shared<Embedding>(context, std::move(exchange), std::move(inputs), as_base64);
  reply->post([embedding] { embedding->ask(); });
}

}  // namespace eider::server
