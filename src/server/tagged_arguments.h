// TaggedArguments: the arguments of a call that a model writes key by key between tags, as the JSON object
// that clients are told, while they stream.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>
#include <string_view>
#include <utility>

namespace eider::server {

/// What may stand between the parts of an answer and between those of a call.
inline constexpr std::string_view kSpaces = " \t\r\n";

/// How a family of models tags a call.
struct CallTags {
  std::string_view name_open, name_close;  ///< no name_close: a tag or the line's end is behind the name
  std::string_view key_open, key_close;
  std::string_view value_open, value_close;
  std::string_view end;  ///< of the arguments
};

/// Parameters whose values are text even where they read like JSON: {tool, parameter}.
using TextParameters = std::set<std::pair<std::string, std::string>>;
/// What the schemas of a chat's tools say of them.
TextParameters text_parameters_of(const nlohmann::ordered_json& tools);

class TaggedArguments {
 public:
  /// `is_text`: whether a parameter's value is text; others are JSON, or text where they are none.
  TaggedArguments(const CallTags& tags, std::function<bool(const std::string& key)> is_text)
      : tags_(&tags), is_text_(std::move(is_text)) {}

  /// Takes from the front of `held` what is certain, and returns it as the next piece of the object.
  std::string take(std::string& held);
  /// The object is whole; `held` goes on with CallTags::end.
  bool done() const { return state_ == State::kDone; }

 private:
  enum class State : std::uint8_t { kBetween, kText, kJson, kDone };

  bool take_between(std::string& held, std::string& json);
  bool take_key(std::string& held, std::string& json);
  bool take_value(std::string& held, std::string& json);

  const CallTags* tags_;
  std::function<bool(const std::string&)> is_text_;
  State state_ = State::kBetween;
  bool first_ = true;
};

}  // namespace eider::server
