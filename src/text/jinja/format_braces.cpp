// str.format: replacement fields with attributes, items, conversions and format specifications.
#include <algorithm>
#include <charconv>

#include "text/jinja/format_spec.h"
#include "text/jinja/interpreter.h"

namespace eider::jinja {

namespace {

bool is_number(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

std::int64_t to_index(std::string_view digits) {
  std::int64_t index = 0;
  const auto [end, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), index);
  if (problem != std::errc()) throw Failure("Too many decimal digits in format string");
  return index;
}

class BraceFormatter {
 public:
  BraceFormatter(Interpreter& interpreter, const Arguments& arguments)
      : interpreter_(interpreter), arguments_(arguments) {}

  std::string format(std::string_view text) {
    std::string result;
    const auto append = [&](std::string_view part) {
      interpreter_.budget().grow_string(result.size(), part.size());
      result += part;
    };
    while (!text.empty()) {
      const std::size_t brace = std::min(text.find_first_of("{}"), text.size());
      append(text.substr(0, brace));
      text.remove_prefix(brace);
      if (text.empty()) break;
      if (text.substr(1).starts_with(text[0])) {
        append(text.substr(0, 1));
        text.remove_prefix(2);
        continue;
      }
      if (text[0] == '}') throw Failure("Single '}' encountered in format string");
      const std::size_t end = text.find_first_of("{}", 1);
      if (end == std::string_view::npos) throw Failure("expected '}' before end of string");
      if (text[end] == '{') throw Failure("a replacement field within another is not supported");
      append(replace(text.substr(1, end - 1)));
      text.remove_prefix(end + 1);
    }
    return result;
  }

 private:
  // name!conversion:specification
  std::string replace(std::string_view field) {
    const std::size_t name_end = std::min(field.find_first_of("!:"), field.size());
    Value value = find(field.substr(0, name_end));
    field.remove_prefix(name_end);
    if (field.starts_with('!')) {
      const char conversion = field.size() > 1 ? field[1] : '\0';
      if (conversion != 's' && conversion != 'r') throw Failure("conversions are !s and !r");
      value =
          conversion == 's' ? to_text(value, interpreter_.budget()) : to_repr(value, interpreter_.budget());
      field.remove_prefix(2);
    }
    if (field.empty() || field == ":") return to_text(value, interpreter_.budget());
    if (field[0] != ':') throw Failure("expected ':' after conversion specifier");
    return format_value(value, parse_format_spec(field.substr(1)), interpreter_.budget());
  }

  // An argument, and what .attribute and [item] say of it.
  Value find(std::string_view path) {
    const std::size_t end = std::min(path.find_first_of(".["), path.size());
    Value value = argument(path.substr(0, end));
    path.remove_prefix(end);
    while (!path.empty()) {
      const bool is_item = path[0] == '[';
      const std::size_t stop = is_item ? path.find(']') : std::min(path.find_first_of(".[", 1), path.size());
      if (stop == std::string_view::npos) throw Failure("Missing ']' in format string");
      const std::string_view name = path.substr(1, stop - 1);
      if (name.empty()) throw Failure("Empty attribute in format string");
      value = !is_item          ? interpreter_.get_attribute(value, name)
              : is_number(name) ? interpreter_.get_item(value, to_index(name))
                                : interpreter_.get_item(value, name);
      path.remove_prefix(stop + (is_item ? 1 : 0));
    }
    return value;
  }

  const Value& argument(std::string_view name) {
    if (!name.empty() && !is_number(name)) return arguments_.require(SIZE_MAX, name);
    const Numbering numbering = name.empty() ? Numbering::kAutomatic : Numbering::kManual;
    if (numbering_ != Numbering::kNone && numbering_ != numbering)
      throw Failure("cannot switch between automatic and manual field numbering");
    numbering_ = numbering;
    const std::size_t index = name.empty() ? next_++ : static_cast<std::size_t>(to_index(name));
    if (index >= arguments_.positional.size())
      throw failure("Replacement index {} out of range for positional args tuple", index);
    return arguments_.positional[index];
  }

  enum class Numbering : std::uint8_t { kNone, kAutomatic, kManual };

  Interpreter& interpreter_;
  const Arguments& arguments_;
  std::size_t next_ = 0;
  Numbering numbering_ = Numbering::kNone;
};

}  // namespace

Value format_braces(Interpreter& interpreter, const Value& text, const Arguments& arguments) {
  return BraceFormatter(interpreter, arguments).format(*text.string());
}

}  // namespace eider::jinja
