// ApiError: what is wrong with a request, and how each API words it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "server/http.h"
#include "serving/scheduler.h"

namespace eider::server {

struct ApiError {
  int status = 400;
  std::string message;
  std::string param;  ///< the field it is about, "messages[2].content"; empty: none
  std::string code;   ///< a word for programs, "context_length_exceeded"; empty: none
  std::optional<std::int64_t> retry_after_s;
};

ApiError to_api_error(const serving::Refusal& refusal);

/// How errors look: {"error": {message, type, param, code}}, or Anthropic's {"type": "error", "error": {type,
/// message}}.
enum class ErrorShape : std::uint8_t { kOpenAi, kAnthropic };
ErrorShape error_shape_for(std::string_view path);

/// The object as JSON text.
std::string error_text(const ApiError& failure, ErrorShape shape, std::string_view request_id);
HttpResponse error_response(const ApiError& failure, ErrorShape shape, std::string_view request_id);

}  // namespace eider::server
