#include "text/chat_template.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "text/jinja/interpreter.h"
#include "text/jinja/lexer.h"
#include "text/jinja/parser.h"
#include "text/jinja/python_text.h"

namespace eider {

namespace {

// Longest template that is looked at; published ones have up to 20 KB.
constexpr std::size_t kMaxSource = std::size_t{4} << 20;

Error error_at(std::string_view source, std::uint32_t offset, std::string_view cause) {
  const std::string_view before = source.substr(0, offset);
  const auto line = std::ranges::count(before, '\n') + 1;
  const std::size_t line_begin = before.rfind('\n') + 1;  // npos + 1 == 0
  return error("chat template, line {}, column {}: {}", line,
               jinja::text_length(before.substr(line_begin)) + 1, cause);
}

std::tm local_time() {
  const std::time_t now = std::time(nullptr);
  std::tm result{};
  localtime_r(&now, &result);
  return result;
}

}  // namespace

struct ChatTemplate::Impl {
  std::string source;
  jinja::Body body;
};

ChatTemplate::ChatTemplate(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ChatTemplate::ChatTemplate(ChatTemplate&&) noexcept = default;
ChatTemplate& ChatTemplate::operator=(ChatTemplate&&) noexcept = default;
ChatTemplate::~ChatTemplate() = default;

Result<ChatTemplate> ChatTemplate::parse(std::string_view source) {
  if (source.size() > kMaxSource) return error("chat template: {} bytes are too long", source.size());
  auto impl = std::make_unique<Impl>();
  impl->source = jinja::normalize_source(source);
  try {
    impl->body = jinja::parse(impl->source);
  } catch (const jinja::Failure& failure) {
    return error_at(impl->source, failure.offset().value_or(0), failure.cause());
  }
  return ChatTemplate(std::move(impl));
}

Result<std::string> ChatTemplate::render(const nlohmann::ordered_json& variables,
                                         const Options& options) const {
  if (!variables.is_object()) return error("chat template: the variables must be a JSON object");
  jinja::Interpreter interpreter(options.now ? *options.now : local_time(), jinja::Limits());
  try {
    return interpreter.render(impl_->body, jinja::from_json(variables));
  } catch (const jinja::Failure& failure) {
    return error_at(impl_->source, failure.offset().value_or(0), failure.cause());
  }
}

}  // namespace eider
