#include "server/generation_fields.h"

#include <fmt/format.h>

#include <charconv>
#include <limits>
#include <string>

namespace eider::server {
namespace {

constexpr std::int64_t kMostTokens = std::numeric_limits<std::int32_t>::max();
constexpr std::int64_t kMostChoices = 128;
constexpr std::size_t kMostStops = 16;
constexpr std::size_t kMostStopBytes = 1024;

void read_logit_bias(Fields& fields, const Context& context, SamplerOptions& options) {
  constexpr double kMostBias = 100;
  const Json* biases = fields.object("logit_bias");
  if (biases == nullptr) return;
  const auto vocabulary = static_cast<std::int64_t>(context.tokenizer->vocabulary().tokens.size());
  for (const auto& [key, value] : biases->items()) {
    TokenId id = -1;
    const auto [end, problem] = std::from_chars(key.data(), key.data() + key.size(), id);
    if (problem != std::errc{} || end != key.data() + key.size() || id < 0 || id >= vocabulary)
      return fields.fail("logit_bias", fmt::format("keys must be token ids from 0 to {}", vocabulary - 1));
    if (!value.is_number() || !(value.get<double>() >= -kMostBias && value.get<double>() <= kMostBias))
      return fields.fail("logit_bias",
                         fmt::format("values must be numbers from {} to {}", -kMostBias, kMostBias));
    // As the API has it, -100 bans a token.
    const double bias = value.get<double>();
    options.logit_bias[id] =
        bias == -kMostBias ? -std::numeric_limits<float>::infinity() : static_cast<float>(bias);
  }
}

}  // namespace

serving::Request default_request(const Context& context, const Exchange& exchange) {
  serving::Request request;
  request.sampling = context.sampling;
  if (context.seed)
    request.sampling.seed = *context.seed;
  else
    request.draw_seed = true;
  request.scope = exchange.scope;
  return request;
}

void read_model(Fields& fields) {
  fields.string("model");
}

void read_sampling(Fields& fields, const Context& context, serving::Request& request) {
  SamplerOptions& options = request.sampling;
  const auto read = [&fields](std::string_view key, double low, double high, float& value) {
    if (const auto given = fields.number(key, low, high)) value = static_cast<float>(*given);
  };
  read("temperature", 0, 100, options.temperature);
  read("top_p", 0, 1, options.top_p);
  read("min_p", 0, 1, options.min_p);
  read("typical_p", 0, 1, options.typical_p);
  read("repeat_penalty", 0.01, 100, options.repeat_penalty);
  read("frequency_penalty", -100, 100, options.frequency_penalty);
  read("presence_penalty", -100, 100, options.presence_penalty);
  if (const auto top_k = fields.integer("top_k", 0, kMostTokens)) options.top_k = *top_k;
  if (const auto last = fields.integer("repeat_last_n", -1, kMostTokens)) options.penalty_last_n = *last;
  read_logit_bias(fields, context, options);
  request.limits.ignore_eos = fields.boolean("ignore_eos").value_or(false);
  if (const auto seed = fields.integer("seed", 0, std::numeric_limits<std::int64_t>::max())) {
    options.seed = static_cast<std::uint64_t>(*seed);
    request.draw_seed = false;
  }
}

void read_stop(Fields& fields, std::string_view key, serving::Request& request) {
  request.limits.stop = fields.strings(key, kMostStops);
  for (const std::string& stop : request.limits.stop)
    if (stop.empty() || stop.size() > kMostStopBytes)
      fields.fail(key, fmt::format("a stop string has 1 to {} bytes", kMostStopBytes));
}

void read_max_tokens(Fields& fields, std::string_view key, serving::Request& request) {
  if (const auto most = fields.integer(key, 1, kMostTokens)) request.limits.max_tokens = *most;
}

void read_choices(Fields& fields, serving::Request& request) {
  request.choices = fields.integer("n", 1, kMostChoices).value_or(1);
}

bool read_response_format(Fields& fields, std::string_view key) {
  const Json* format = fields.object(key);
  if (format == nullptr) return false;
  Fields inner(*format, fields.path(key), fields.problem());
  inner.require("type");
  const auto type = inner.choice("type", {"text", "json_object", "json_schema"});
  if (type == 2U) inner.fail("type", "json_schema is not built yet; json_object is", "unsupported");
  if (type != 2U) inner.finish();
  return type == 1U;
}

Streaming read_streaming(Fields& fields) {
  Streaming streaming;
  streaming.on = fields.boolean("stream").value_or(false);
  if (const Json* options = fields.object("stream_options")) {
    Fields inner(*options, fields.path("stream_options"), fields.problem());
    streaming.include_usage = inner.boolean("include_usage").value_or(false);
    inner.ignore({"include_obfuscation"});
    inner.finish();
  }
  return streaming;
}

}  // namespace eider::server
