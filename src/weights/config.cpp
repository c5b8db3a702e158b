#include "weights/config.h"

#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/check.h"
#include "text/json_text.h"

namespace eider {
namespace {

using nlohmann::json;

/// "an integer", "a string", ... with the value where it is short.
std::string describe(const json& value) {
  switch (value.type()) {
    case json::value_t::object:
      return "an object";
    case json::value_t::array:
      return "an array";
    case json::value_t::string:
      return "a string";
    case json::value_t::boolean:
      return value.get<bool>() ? "true" : "false";
    case json::value_t::number_integer:
    case json::value_t::number_unsigned:
    case json::value_t::number_float:
      return to_json_text(value);
    default:
      return "null";
  }
}

std::optional<std::int64_t> as_integer(const json& value) {
  if (value.is_number_unsigned() &&
      value.get<std::uint64_t>() > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
    return std::nullopt;
  if (!value.is_number_integer()) return std::nullopt;
  return value.get<std::int64_t>();
}

std::optional<double> as_number(const json& value) {
  if (!value.is_number()) return std::nullopt;
  return value.get<double>();
}

std::optional<bool> as_boolean(const json& value) {
  if (!value.is_boolean()) return std::nullopt;
  return value.get<bool>();
}

std::optional<std::string> as_string(const json& value) {
  if (!value.is_string()) return std::nullopt;
  return value.get<std::string>();
}

template <class T>
std::optional<std::vector<T>> as_vector(const json& value, std::optional<T> (*as_element)(const json&)) {
  if (!value.is_array()) return std::nullopt;
  std::vector<T> elements;
  elements.reserve(value.size());
  for (const json& element : value) {
    std::optional<T> converted = as_element(element);
    if (!converted) return std::nullopt;
    elements.push_back(*std::move(converted));
  }
  return elements;
}

std::optional<std::vector<std::string>> as_strings(const json& value) {
  return as_vector<std::string>(value, as_string);
}

std::optional<std::vector<std::int64_t>> as_integers(const json& value) {
  return as_vector<std::int64_t>(value, as_integer);
}

/// The value of a key by `convert`, or an error that says what was expected and what is there.
template <class T>
Result<T> read(const Config& config, std::string_view key, std::string_view expected,
               std::optional<T> (*convert)(const json&)) {
  if (!config.has(key)) return error("{}: {}: missing", config.origin(), key);
  const json& value = *config.json().find(key);
  std::optional<T> converted = convert(value);
  if (!converted)
    return error("{}: {}: expected {}, found {}", config.origin(), key, expected, describe(value));
  return *std::move(converted);
}

}  // namespace

Config::Config(nlohmann::json object, std::string origin)
    : object_(std::make_unique<nlohmann::json>(std::move(object))), origin_(std::move(origin)) {
  EIDER_CHECK(object_->is_object());
}
Config::Config(const Config& other)
    : object_(std::make_unique<nlohmann::json>(*other.object_)), origin_(other.origin_) {}
Config::Config(Config&&) noexcept = default;
Config& Config::operator=(Config&&) noexcept = default;
Config::~Config() = default;

bool Config::has(std::string_view key) const {
  const auto found = object_->find(key);
  return found != object_->end() && !found->is_null();
}

Result<std::int64_t> Config::integer(std::string_view key) const {
  return read(*this, key, "an integer", as_integer);
}

Result<double> Config::number(std::string_view key) const {
  return read(*this, key, "a number", as_number);
}

Result<bool> Config::boolean(std::string_view key) const {
  return read(*this, key, "true or false", as_boolean);
}

Result<std::string> Config::string(std::string_view key) const {
  return read(*this, key, "a string", as_string);
}

Result<std::vector<std::string>> Config::strings(std::string_view key) const {
  return read(*this, key, "an array of strings", as_strings);
}

Result<std::vector<std::int64_t>> Config::integers(std::string_view key) const {
  return read(*this, key, "an array of integers", as_integers);
}

Result<Config> Config::object(std::string_view key) const {
  if (!has(key)) return error("{}: {}: missing", origin_, key);
  const nlohmann::json& value = *object_->find(key);
  if (!value.is_object()) return error("{}: {}: expected an object, found {}", origin_, key, describe(value));
  return Config(value, fmt::format("{}: {}", origin_, key));
}

Result<std::int64_t> Config::integer_or(std::string_view key, std::int64_t fallback) const {
  if (!has(key)) return fallback;
  return integer(key);
}

Result<double> Config::number_or(std::string_view key, double fallback) const {
  if (!has(key)) return fallback;
  return number(key);
}

Result<bool> Config::boolean_or(std::string_view key, bool fallback) const {
  if (!has(key)) return fallback;
  return boolean(key);
}

Result<std::string> Config::string_or(std::string_view key, std::string_view fallback) const {
  if (!has(key)) return std::string(fallback);
  return string(key);
}

Result<std::int64_t> Config::size(std::string_view key, std::int64_t limit) const {
  EIDER_TRY(const auto value, integer(key));
  if (value < 1 || value > limit) return error("{}: {}: {} is outside 1 to {}", origin_, key, value, limit);
  return value;
}

}  // namespace eider
