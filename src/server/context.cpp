#include "server/context.h"

#include <sys/random.h>

#include <utility>

#include "base/check.h"
#include "text/json_text.h"

namespace eider::server {

void record(const Context& context, const Exchange& exchange, RequestRecord record) {
  using Milliseconds = std::chrono::duration<double, std::milli>;
  record.id = exchange.request.id;
  record.method = exchange.request.method;
  record.path = exchange.request.path;
  record.endpoint = exchange.endpoint;
  record.total_ms = Milliseconds(std::chrono::steady_clock::now() - exchange.arrived).count();
  if (context.metrics != nullptr) context.metrics->count(record);
  if (context.log) context.log(record);
}

void refuse(const Context& context, const Exchange& exchange, const ApiError& failure) {
  const ErrorShape shape = error_shape_for(exchange.request.path);
  exchange.reply->send(error_response(failure, shape, exchange.request.id));
  RequestRecord result;
  result.status = failure.status;
  // Messages may quote a client's text; the field's name and the code say enough.
  result.problem = failure.code.empty() ? failure.param : failure.code;
  record(context, exchange, std::move(result));
}

void respond(const Context& context, const Exchange& exchange, const Json& body) {
  HttpResponse response;
  response.body = to_json_text(body);
  exchange.reply->send(std::move(response));
  RequestRecord result;
  result.status = 200;
  record(context, exchange, std::move(result));
}

std::string new_id(std::string_view prefix, std::size_t length) {
  constexpr std::string_view kLetters = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
  std::string random(length, '\0');
  EIDER_CHECK(getrandom(random.data(), random.size(), 0) == static_cast<ssize_t>(random.size()));
  std::string id(prefix);
  for (const char c : random) id += kLetters[static_cast<unsigned char>(c) % kLetters.size()];
  return id;
}

std::int64_t unix_seconds() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace eider::server
