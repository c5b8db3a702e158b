#include "text/jinja/callable.h"

#include <algorithm>

#include "text/jinja/operators.h"

namespace eider::jinja {

const Value* Arguments::find(std::size_t position, std::string_view name) const {
  if (position < positional.size()) return &positional[position];
  const auto found = std::ranges::find(named, name, &std::pair<std::string, Value>::first);
  return found == named.end() ? nullptr : &found->second;
}

const Value& Arguments::require(std::size_t position, std::string_view name) const {
  const Value* value = find(position, name);
  if (value == nullptr) throw failure("missing argument '{}'", name);
  return *value;
}

std::string_view Arguments::text(std::size_t position, std::string_view name) const {
  const Value& value = require(position, name);
  jinja::require_defined(value);
  if (value.string() == nullptr) throw failure("argument '{}' must be str, not {}", name, type_name(value));
  return *value.string();
}

std::string_view Arguments::text_or(std::size_t position, std::string_view name,
                                    std::string_view fallback) const {
  const Value* value = find(position, name);
  return value == nullptr || value->is_none() ? fallback : text(position, name);
}

std::int64_t Arguments::integer_or(std::size_t position, std::string_view name, std::int64_t fallback) const {
  const Value* value = find(position, name);
  if (value == nullptr || value->is_none()) return fallback;
  if (const bool* boolean = value->boolean()) return *boolean ? 1 : 0;
  if (value->integer() == nullptr)
    throw failure("argument '{}' must be int, not {}", name, type_name(*value));
  return *value->integer();
}

bool Arguments::truth_or(std::size_t position, std::string_view name, bool fallback) const {
  const Value* value = find(position, name);
  return value == nullptr ? fallback : is_true(*value);
}

void Arguments::at_most(std::size_t most) const {
  if (positional.size() > most)
    throw failure("takes at most {} arguments, {} given", most, positional.size());
}

}  // namespace eider::jinja
