// What a template can call: its macros, and the functions and methods that this folder defines.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "text/jinja/value.h"

namespace eider::jinja {

class Interpreter;
struct MacroDefinition;
struct Scope;

/// Evaluated arguments of a call, with the accessors that builtins take them by.
struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;

  /// By position (counted from 0) or name; null where it is absent.
  const Value* find(std::size_t position, std::string_view name) const;
  /// Throws Failure where it is absent.
  const Value& require(std::size_t position, std::string_view name) const;
  /// The others throw Failure where it is of another type.
  std::string_view text(std::size_t position, std::string_view name) const;
  std::string_view text_or(std::size_t position, std::string_view name, std::string_view fallback) const;
  std::int64_t integer_or(std::size_t position, std::string_view name, std::int64_t fallback) const;
  bool truth_or(std::size_t position, std::string_view name, bool fallback) const;
  /// Throws Failure where there are more than `most` positional arguments.
  void at_most(std::size_t most) const;
};

/// A filter (self: what is filtered), a method (self: the object) or a function (self: undefined).
using Builtin = Value (*)(Interpreter& interpreter, const Value& self, const Arguments& arguments);
using BuiltinTest = bool (*)(Interpreter& interpreter, const Value& self, const Arguments& arguments);

struct NamedBuiltin {
  std::string_view name;
  Builtin function;
};

struct Method {
  Value self;
  Builtin function;
};

/// A macro, or the body of a call block, with the scope it was defined in.
struct Macro {
  const MacroDefinition* definition;
  Scope* scope;
};

struct Callable {
  std::variant<Method, Macro> target;
  std::string name;
};

/// Null where there is none of that name.
Builtin find_filter(std::string_view name);
BuiltinTest find_test(std::string_view name);
Builtin find_function(std::string_view name);
/// A method that values of `self`'s type have.
Builtin find_method(const Value& self, std::string_view name);

}  // namespace eider::jinja
