#include "server/api_error.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "text/json_text.h"

namespace eider::server {
namespace {

using Json = nlohmann::ordered_json;

/// What an API calls errors of a status.
const char* error_type(int status, ErrorShape shape) {
  const bool anthropic = shape == ErrorShape::kAnthropic;
  switch (status) {
    case 401:
      return "authentication_error";
    case 403:
      return "permission_error";
    case 404:
      return "not_found_error";
    case 413:
      return anthropic ? "request_too_large" : "invalid_request_error";
    case 429:
      return "rate_limit_error";
    case 503:
      return anthropic ? "overloaded_error" : "service_unavailable_error";
    default:
      break;
  }
  if (status < 500) return "invalid_request_error";
  return anthropic ? "api_error" : "server_error";
}

}  // namespace

ApiError to_api_error(const serving::Refusal& refusal) {
  using Kind = serving::Refusal::Kind;
  switch (refusal.kind) {
    case Kind::kQueueFull:
      return {429, refusal.message, "", "queue_full", refusal.retry_after_s};
    case Kind::kDraining:
      return {503, refusal.message, "", "shutting_down", 1};
    case Kind::kPromptTooLong:
      return {400, refusal.message, "messages", "context_length_exceeded", {}};
    case Kind::kUnsupported:
      return {400, refusal.message, "model", "unsupported", {}};
    case Kind::kInvalid:
      break;
  }
  return {400, refusal.message, "", "", {}};
}

ErrorShape error_shape_for(std::string_view path) {
  return path.starts_with("/v1/messages") ? ErrorShape::kAnthropic : ErrorShape::kOpenAi;
}

std::string error_text(const ApiError& failure, ErrorShape shape, std::string_view request_id) {
  const auto or_null = [](const std::string& text) { return text.empty() ? Json() : Json(text); };
  if (shape == ErrorShape::kOpenAi)
    return to_json_text(Json{{"error",
                              {{"message", failure.message},
                               {"type", error_type(failure.status, shape)},
                               {"param", or_null(failure.param)},
                               {"code", or_null(failure.code)}}}});
  // This API has no place for the field's name but the message.
  const bool named = failure.param.empty() || failure.message.starts_with(failure.param);
  const std::string message = named ? failure.message : fmt::format("{}: {}", failure.param, failure.message);
  return to_json_text(Json{{"type", "error"},
                           {"error", {{"type", error_type(failure.status, shape)}, {"message", message}}},
                           {"request_id", request_id}});
}

HttpResponse error_response(const ApiError& failure, ErrorShape shape, std::string_view request_id) {
  HttpResponse response;
  response.status = failure.status;
  response.body = error_text(failure, shape, request_id);
  if (failure.retry_after_s)
    response.headers.emplace_back("retry-after", std::to_string(*failure.retry_after_s));
  if (failure.status == 401) response.headers.emplace_back("www-authenticate", "Bearer");
  return response;
}

}  // namespace eider::server
