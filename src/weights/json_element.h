// Access to a parsed simdjson document by name, with errors that say where: for large JSON files.
#pragma once

#include <simdjson.h>

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace eider {

/// Most elements of an array or object that make sense in a tokenizer.
inline constexpr std::size_t kMostJsonItems = std::size_t{1} << 22;

/// A value together with its place in the document, "model.vocab".
struct JsonElement {
  simdjson::dom::element value;
  std::string place;

  /// The member `key`; absent where this is no object, has no such member, or has null there.
  std::optional<JsonElement> find(std::string_view key) const {
    simdjson::dom::object object;
    simdjson::dom::element member;
    if (value.get(object) != simdjson::SUCCESS || object.at_key(key).get(member) != simdjson::SUCCESS ||
        member.is_null())
      return std::nullopt;
    return JsonElement{member, place.empty() ? std::string(key) : fmt::format("{}.{}", place, key)};
  }

  Result<JsonElement> at(std::string_view key) const {
    auto member = find(key);
    if (!member) return error("{}{}{} is missing", place, place.empty() ? "" : ".", key);
    return *std::move(member);
  }

  /// The value as T: std::string_view, std::int64_t, bool, simdjson::dom::array or object.
  template <class T>
  Result<T> as(std::string_view expected) const {
    T result{};
    if (value.get(result) != simdjson::SUCCESS) return error("{}: expected {}", place, expected);
    return result;
  }
  Result<std::string_view> string() const { return as<std::string_view>("a string"); }
  Result<std::int64_t> integer() const { return as<std::int64_t>("an integer"); }

  /// The member as a bool, `otherwise` where it is absent.
  Result<bool> flag(std::string_view key, bool otherwise) const {
    const auto member = find(key);
    if (!member) return otherwise;
    return member->as<bool>("true or false");
  }
  /// The member as a string, empty where it is absent.
  Result<std::string_view> string(std::string_view key) const {
    const auto member = find(key);
    if (!member) return std::string_view();
    return member->string();
  }
};

}  // namespace eider
