// FormatSpec: how Python's str.format and % lay out one value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "text/jinja/budget.h"
#include "text/jinja/callable.h"
#include "text/jinja/value.h"

namespace eider::jinja {

/// [[fill]align][sign][#][0][width][grouping][.precision][type]
struct FormatSpec {
  std::string_view fill = " ";  ///< one character
  char align = '\0';            ///< < > ^ =, or the type's own
  char sign = '-';              ///< - + or a space
  bool alternate = false;
  std::int64_t width = 0;  ///< characters
  char grouping = '\0';    ///< , or _
  std::optional<int> precision;
  char type = '\0';
};

/// Throws Failure where `text` is none.
FormatSpec parse_format_spec(std::string_view text);

/// format(value, spec); throws Failure where the two do not go together.
std::string format_value(const Value& value, const FormatSpec& spec, Budget& budget);

/// text.format(*arguments)
Value format_braces(Interpreter& interpreter, const Value& text, const Arguments& arguments);

/// text % arguments
std::string format_percent(std::string_view text, const Value& arguments, Budget& budget);

}  // namespace eider::jinja
