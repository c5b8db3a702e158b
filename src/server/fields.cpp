#include "server/fields.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "text/utf8.h"
#include "weights/json.h"

namespace eider::server {

void Problem::add(std::string param, std::string message, std::string code) {
  if (!first_) first_ = ApiError{400, std::move(message), std::move(param), std::move(code), {}};
}

namespace {

const Json& empty_object() {
  static const Json object = Json::object();
  return object;
}

/// A name of the client's in a message: of bounded length.
std::string in_quotes(std::string_view text) {
  constexpr std::size_t kMostBytes = 64;
  if (text.size() <= kMostBytes) return fmt::format("'{}'", text);
  std::string_view head = text.substr(0, kMostBytes);
  while (!head.empty() && !is_valid_utf8(head)) head.remove_suffix(1);
  return fmt::format("'{}...'", head);
}

}  // namespace

Fields::Fields(const Json& object, std::string place, Problem& problem)
    : object_(&object), place_(std::move(place)), problem_(&problem) {
  if (object.is_object()) return;
  problem.add(place_, fmt::format("{}: must be an object", place_.empty() ? "the body" : place_));
  object_ = &empty_object();
}

std::string Fields::path(std::string_view key) const {
  return place_.empty() ? std::string(key) : fmt::format("{}.{}", place_, key);
}

void Fields::fail(std::string_view key, std::string message, std::string code) {
  problem_->add(path(key), fmt::format("{}: {}", path(key), message), std::move(code));
}

const Json* Fields::value(std::string_view key) {
  known_.emplace(key);
  const auto found = object_->find(std::string(key));
  return found == object_->end() || found->is_null() ? nullptr : &*found;
}

std::optional<std::string> Fields::string(std::string_view key) {
  const Json* found = value(key);
  if (found == nullptr) return std::nullopt;
  if (found->is_string()) return found->get<std::string>();
  fail(key, "must be a string");
  return std::nullopt;
}

std::optional<bool> Fields::boolean(std::string_view key) {
  const Json* found = value(key);
  if (found == nullptr) return std::nullopt;
  if (found->is_boolean()) return found->get<bool>();
  fail(key, "must be true or false");
  return std::nullopt;
}

std::optional<std::int64_t> Fields::integer(std::string_view key, std::int64_t low, std::int64_t high) {
  const Json* found = value(key);
  if (found == nullptr) return std::nullopt;
  const bool fits = found->is_number_integer() &&
                    !(found->is_number_unsigned() && found->get<std::uint64_t>() > std::uint64_t{INT64_MAX});
  if (fits && found->get<std::int64_t>() >= low && found->get<std::int64_t>() <= high)
    return found->get<std::int64_t>();
  fail(key, fmt::format("must be an integer from {} to {}", low, high));
  return std::nullopt;
}

std::optional<double> Fields::number(std::string_view key, double low, double high) {
  const Json* found = value(key);
  if (found == nullptr) return std::nullopt;
  if (found->is_number() && found->get<double>() >= low && found->get<double>() <= high)
    return found->get<double>();
  fail(key, fmt::format("must be a number from {} to {}", low, high));
  return std::nullopt;
}

std::vector<std::string> Fields::strings(std::string_view key, std::size_t most) {
  const Json* found = value(key);
  if (found == nullptr) return {};
  if (found->is_string()) return {found->get<std::string>()};
  const bool good =
      found->is_array() && found->size() <= most &&
      std::all_of(found->begin(), found->end(), [](const Json& item) { return item.is_string(); });
  if (good) return found->get<std::vector<std::string>>();
  fail(key, fmt::format("must be a string, or an array of at most {} strings", most));
  return {};
}

const Json* Fields::array(std::string_view key) {
  const Json* found = value(key);
  if (found == nullptr || found->is_array()) return found;
  fail(key, "must be an array");
  return nullptr;
}

const Json* Fields::object(std::string_view key) {
  const Json* found = value(key);
  if (found == nullptr || found->is_object()) return found;
  fail(key, "must be an object");
  return nullptr;
}

std::optional<std::size_t> Fields::choice(std::string_view key,
                                          std::initializer_list<std::string_view> choices) {
  const Json* found = value(key);
  if (found == nullptr) return std::nullopt;
  const auto* match = choices.end();
  if (found->is_string())
    match = std::find(choices.begin(), choices.end(), found->get_ref<const std::string&>());
  if (match != choices.end()) return static_cast<std::size_t>(match - choices.begin());
  fail(key, fmt::format("must be one of {}", fmt::join(choices, ", ")));
  return std::nullopt;
}

void Fields::ignore(std::initializer_list<std::string_view> keys) {
  for (const std::string_view key : keys) known_.emplace(key);
}

void Fields::refuse(std::initializer_list<std::string_view> keys, std::string_view why) {
  for (const std::string_view key : keys)
    if (value(key) != nullptr) fail(key, std::string(why), "unsupported");
}

void Fields::require(std::string_view key) {
  if (value(key) == nullptr) fail(key, "is required");
}

void Fields::finish() {
  for (const auto& [key, member] : object_->items())
    if (!known_.contains(key) && !member.is_null())
      problem_->add(path(key), fmt::format("{} is not a field that is known here", in_quotes(path(key))),
                    "unknown_field");
}

std::optional<Json> parse_body(std::string_view body, Problem& problem) {
  if (!is_valid_utf8(body)) {
    problem.add("", "the body is not valid UTF-8");
    return std::nullopt;
  }
  Result<Json> parsed = parse_json_in_order(body);
  if (!parsed.ok()) {
    problem.add("", fmt::format("the body is not JSON that is accepted: {}", parsed.error().message()));
    return std::nullopt;
  }
  if (!parsed->is_object()) {
    problem.add("", "the body must be a JSON object");
    return std::nullopt;
  }
  return std::move(parsed).value();
}

}  // namespace eider::server
