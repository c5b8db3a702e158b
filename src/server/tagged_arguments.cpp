#include "server/tagged_arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "runtime/stop_strings.h"
#include "text/json_text.h"
#include "weights/json.h"

namespace eider::server {
namespace {

using Json = nlohmann::ordered_json;

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = std::min(text.find_first_not_of(kSpaces), text.size());
  return text.substr(begin, text.find_last_not_of(kSpaces) + 1 - begin);
}

std::string json_string(std::string_view text) {
  return to_json_text(Json(std::string(text)));
}

/// What stands between the quotes.
std::string escaped(std::string_view text) {
  const std::string json = json_string(text);
  return json.substr(1, json.size() - 2);
}

/// A value as JSON: templates print some as Python does.
std::string json_value(std::string_view text) {
  const std::string_view value = trimmed(text);
  if (value == "True") return "true";
  if (value == "False") return "false";
  if (value == "None") return "null";
  const Result<Json> parsed = parse_json_in_order(value);
  return parsed.ok() ? to_json_text(*parsed) : json_string(text);
}

bool is_text_schema(const Json& schema) {
  const auto type = schema.find("type");
  if (type != schema.end()) return *type == "string";
  const auto choices = schema.find("enum");
  return choices != schema.end() && choices->is_array() &&
         std::ranges::all_of(*choices, [](const Json& choice) { return choice.is_string(); });
}

}  // namespace

TextParameters text_parameters_of(const Json& tools) {
  TextParameters result;
  for (const Json& tool : tools) {
    const Json& function = tool.at("function");
    const Json properties = function.value("parameters", Json::object()).value("properties", Json());
    if (!properties.is_object()) continue;
    for (const auto& [key, schema] : properties.items())
      if (schema.is_object() && is_text_schema(schema))
        result.emplace(function.at("name").get<std::string>(), key);
  }
  return result;
}

std::string TaggedArguments::take(std::string& held) {
  std::string json;
  bool more = true;
  while (more && !held.empty() && !done())
    more = state_ == State::kBetween ? take_between(held, json) : take_value(held, json);
  return json;
}

/// Each of these returns false where it needs more text.
bool TaggedArguments::take_between(std::string& held, std::string& json) {
  held.erase(0, held.find_first_not_of(kSpaces));  // npos: all of it
  if (held.starts_with(tags_->key_open)) return take_key(held, json);
  if (held.starts_with(tags_->end)) {
    json += first_ ? "{}" : "}";
    state_ = State::kDone;
    return true;
  }
  if (tags_->key_open.starts_with(held) || tags_->end.starts_with(held)) return false;
  held.erase(0, held.find('<', 1));  // words between the tags mean nothing
  return true;
}

bool TaggedArguments::take_key(std::string& held, std::string& json) {
  const std::size_t begin = tags_->key_open.size(), end = held.find(tags_->key_close, begin);
  if (end == std::string::npos) return false;
  std::size_t value = end + tags_->key_close.size();
  if (!tags_->value_open.empty()) {
    const std::size_t open = held.find(tags_->value_open, value);
    if (open == std::string::npos) return false;
    value = open + tags_->value_open.size();
  } else {  // the value has lines of its own
    if (value == held.size()) return false;
    if (held[value] == '\n') ++value;
  }
  const std::string key(trimmed(std::string_view(held).substr(begin, end - begin)));
  json += fmt::format("{}{}: ", std::exchange(first_, false) ? "{" : ", ", json_string(key));
  state_ = is_text_(key) ? State::kText : State::kJson;
  if (state_ == State::kText) json += '"';
  held.erase(0, value);
  return true;
}

bool TaggedArguments::take_value(std::string& held, std::string& json) {
  const bool on_lines = tags_->value_open.empty();
  const std::size_t close = held.find(tags_->value_close);
  if (close != std::string::npos) {
    std::string_view value = std::string_view(held).substr(0, close);
    if (on_lines && value.ends_with('\n')) value.remove_suffix(1);
    json += state_ == State::kText ? escaped(value) + '"' : json_value(value);
    held.erase(0, close + tags_->value_close.size());
    state_ = State::kBetween;
    return true;
  }
  if (state_ == State::kJson) return false;
  std::size_t tail = tail_that_begins(held, tags_->value_close);
  if (on_lines) {
    const std::string close_on_line = '\n' + std::string(tags_->value_close);
    tail = std::max(tail, tail_that_begins(held, close_on_line));
  }
  json += escaped(std::string_view(held).substr(0, held.size() - tail));
  held.erase(0, held.size() - tail);
  return false;
}

}  // namespace eider::server
