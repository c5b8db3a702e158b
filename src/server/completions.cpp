// POST /v1/completions: https://platform.openai.com/docs/api-reference/completions
#include <fmt/format.h>

#include <utility>

#include "server/answering.h"
#include "server/endpoints.h"
#include "server/generation_fields.h"
#include "server/logprobs.h"
#include "server/prompt_input.h"
#include "text/json_text.h"

namespace eider::server {
namespace {

constexpr std::int64_t kDefaultMaxTokens = 16;  // as the API has it
constexpr std::size_t kMostPrompts = 128;

/// A choice's logprobs in the lists of this API.
struct LogprobLists {
  Json tokens = Json::array(), token_logprobs = Json::array(), top_logprobs = Json::array(),
       text_offset = Json::array();
  std::size_t offset = 0;

  void add(const Tokenizer& tokenizer, const serving::Delta& delta) {
    const std::string text = token_text(tokenizer, delta.logprob->id);
    tokens.push_back(text);
    token_logprobs.push_back(delta.logprob->logprob);
    Json top = Json::object();
    for (const serving::TokenLogprob& token : delta.top_logprobs)
      top[token_text(tokenizer, token.id)] = token.logprob;
    top_logprobs.push_back(std::move(top));
    text_offset.push_back(offset);
    offset += text.size();
  }
  Json take() {
    if (tokens.empty()) return {};
    return {{"tokens", std::exchange(tokens, Json::array())},
            {"token_logprobs", std::exchange(token_logprobs, Json::array())},
            {"top_logprobs", std::exchange(top_logprobs, Json::array())},
            {"text_offset", std::exchange(text_offset, Json::array())}};
  }
};

class CompletionWriter final : public AnswerWriter {
 public:
  /// `beginnings`: of each choice's text.
  CompletionWriter(const Context& context, const Exchange& exchange,
                   const std::vector<std::string>& beginnings, Streaming streaming)
      : context_(context),
        reply_(exchange.reply),
        request_id_(exchange.request.id),
        events_(exchange.reply),
        streaming_(streaming) {
    for (const std::string& beginning : beginnings) choices_.push_back({beginning, {}, {}});
  }

  void begin(const serving::Started& started) override {
    seed_ = started.seed;
    if (streaming_.on) events_.begin();
  }

  void token(std::int64_t choice, const std::vector<AnswerPart>& parts,
             const serving::Delta& delta) override {
    Choice& answer = choices_[static_cast<std::size_t>(choice)];
    for (const AnswerPart& part : parts) answer.text += part.text;
    if (delta.logprob) answer.logprobs.add(*context_.tokenizer, delta);
    if (streaming_.on && (!answer.text.empty() || delta.logprob))
      events_.data(object(Json::array({take(choice)})));
  }

  void finish_choice(std::int64_t choice, const ChoiceEnd& end) override {
    choices_[static_cast<std::size_t>(choice)].finish_reason = openai_finish_reason(end);
    if (streaming_.on) events_.data(object(Json::array({take(choice)})));
  }

  void end(const Usage& usage) override {
    Json choices = Json::array();
    for (std::size_t i = 0; !streaming_.on && i < choices_.size(); ++i)
      choices.push_back(take(static_cast<std::int64_t>(i)));
    Json body = object(std::move(choices));
    body["usage"] = openai_usage(usage);
    if (streaming_.on) {
      if (streaming_.include_usage) events_.data(body);
      events_.raw_data("[DONE]");
      return events_.end();
    }
    HttpResponse response;
    response.body = to_json_text(body);
    reply_->send(std::move(response));
  }

  void fail(const ApiError& failure) override {
    if (!events_.begun()) return reply_->send(error_response(failure, ErrorShape::kOpenAi, request_id_));
    events_.raw_data(error_text(failure, ErrorShape::kOpenAi, request_id_));
    events_.end();
  }

 private:
  struct Choice {
    std::string text;
    LogprobLists logprobs;
    std::optional<std::string> finish_reason;
  };

  /// What a choice has gathered since the last time.
  Json take(std::int64_t index) {
    Choice& choice = choices_[static_cast<std::size_t>(index)];
    return {{"index", index},
            {"text", std::exchange(choice.text, {})},
            {"logprobs", choice.logprobs.take()},
            {"finish_reason", choice.finish_reason ? Json(*choice.finish_reason) : Json()}};
  }

  Json object(Json choices) const {
    return {{"id", id_},
            {"object", "text_completion"},
            {"created", created_},
            {"model", context_.model_id},
            {"system_fingerprint", "eider-" + context_.version},
            {"seed", seed_},
            {"choices", std::move(choices)}};
  }

  const Context& context_;
  std::shared_ptr<HttpReply> reply_;
  std::string request_id_;
  EventStream events_;
  std::vector<Choice> choices_;
  Streaming streaming_;
  std::string id_ = new_id("cmpl-");
  std::int64_t created_ = unix_seconds();
  std::uint64_t seed_ = 0;
};

}  // namespace

void completions(const Context& context, Exchange& exchange, const Json& body, Problem& problem) {
  Fields fields(body, "", problem);
  serving::Request request = default_request(context, exchange);
  read_model(fields);
  std::vector<Prompt> prompts = read_prompts(fields, "prompt", context, kMostPrompts);
  request.limits.max_tokens = kDefaultMaxTokens;
  read_max_tokens(fields, "max_tokens", request);
  read_sampling(fields, context, request);
  read_choices(fields, request);
  read_stop(fields, "stop", request);
  if (const auto top = fields.integer("logprobs", 0, 20)) {
    request.logprobs = true;
    request.top_logprobs = *top;
  }
  const bool json_object = read_response_format(fields, "response_format");
  const Streaming streaming = read_streaming(fields);
  const bool echo = fields.boolean("echo").value_or(false);
  if (echo && request.logprobs)
    fields.fail("echo", "with logprobs is not supported: prompts have none", "unsupported");
  if (fields.integer("best_of", 1, 128).value_or(request.choices) != request.choices)
    fields.fail("best_of", "is not supported; n gives that many answers", "unsupported");
  fields.ignore({"user", "cache_prompt"});
  fields.refuse({"suffix"}, "is not supported");
  fields.finish();
  if (!problem.none()) return;

  if (json_object) request.make_mask = make_json_mask(context.json_tokens, nullptr);
  // All prompts are answered with the one seed that the answer tells.
  if (std::exchange(request.draw_seed, false)) request.sampling.seed = serving::draw_seed();
  std::vector<serving::Request> requests;
  std::vector<std::string> beginnings;
  for (Prompt& prompt : prompts) {
    requests.push_back(request);
    requests.back().prompt = std::move(prompt.ids);
    beginnings.insert(beginnings.end(), static_cast<std::size_t>(request.choices), echo ? prompt.text : "");
  }
  auto writer = std::make_unique<CompletionWriter>(context, exchange, beginnings, streaming);
  answer(context, std::move(exchange), std::move(requests), std::nullopt, std::move(writer));
}

}  // namespace eider::server
