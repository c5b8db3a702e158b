// Filters of strings, numbers and single values.
#include "text/jinja/filters.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "text/jinja/format_spec.h"
#include "text/jinja/interpreter.h"
#include "text/jinja/operators.h"
#include "text/jinja/python_text.h"

namespace eider::jinja {

namespace {

template <std::string (*map)(std::string_view)>
Value map_as_text(Interpreter& interpreter, const Value& self, const Arguments&) {
  return map(to_text(self, interpreter.budget()));
}

Value as_string(Interpreter& interpreter, const Value& self, const Arguments&) {
  return to_text(self, interpreter.budget());
}

Value trim(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  const std::string text = to_text(self, interpreter.budget());
  return strip(text, arguments.text_or(0, "chars", ""));
}

// A method of strings as a filter.
Value call_method(Interpreter& interpreter, std::string_view name, const Value& self,
                  const Arguments& arguments) {
  const Value text = to_text(self, interpreter.budget());
  return find_method(text, name)(interpreter, text, arguments);
}

Value replace_as_text(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  Arguments texts{
      {to_text(arguments.require(0, "old"), interpreter.budget()),
       to_text(arguments.require(1, "new"), interpreter.budget()), arguments.integer_or(2, "count", -1)},
      {}};
  return call_method(interpreter, "replace", self, texts);
}

Value center(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  return call_method(interpreter, "center", self, {{arguments.integer_or(0, "width", 80)}, {}});
}

Value format(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  const std::string text = to_text(self, interpreter.budget());
  return format_percent(text, make_tuple(arguments.positional), interpreter.budget());
}

std::string escape_html(std::string_view text) {
  std::string result;
  for (const char c : text) {
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&#34;";
        break;
      case '\'':
        result += "&#39;";
        break;
      default:
        result.push_back(c);
    }
  }
  return result;
}

Value escape(Interpreter& interpreter, const Value& self, const Arguments&) {
  std::string result = escape_html(to_text(self, interpreter.budget()));
  interpreter.budget().make_string(result.size());
  return result;
}

// A dict as the attributes of a tag: ` key="value"` for each that is there.
Value xml_attributes(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  if (self.dict() == nullptr) throw failure("xmlattr needs a mapping, not {}", type_name(self));
  const bool leading_space = arguments.truth_or(0, "autospace", true);
  std::string result;
  for (const auto& [key, value] : self.dict()->entries) {
    if (value.is_none() || value.is_undefined()) continue;
    const std::string name = to_text(key, interpreter.budget());
    if (name.find_first_of(" \t\n\f\r/>=") != std::string::npos)
      throw failure("Invalid character in attribute name: {}", quote(name));
    const std::string one = fmt::format("{}{}=\"{}\"", result.empty() && !leading_space ? "" : " ",
                                        escape_html(name), escape_html(to_text(value, interpreter.budget())));
    interpreter.budget().grow_string(result.size(), one.size());
    result += one;
  }
  return result;
}

Value file_size(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  const bool binary = arguments.truth_or(0, "binary", false);
  require_defined(self);
  const Value number = find_filter("float")(interpreter, self, {{None{}}, {}});
  if (number.floating() == nullptr)
    throw failure("could not convert {} to float", to_repr(self, interpreter.budget()));
  const double bytes = *number.floating();
  if (!std::isfinite(bytes)) throw failure("cannot convert float {} to integer", format_float(bytes));
  const double base = binary ? 1024 : 1000;
  if (bytes == 1) return "1 Byte";
  if (bytes < base) return fmt::format("{:.0f} Bytes", std::trunc(bytes));
  const std::string_view prefixes = binary ? "KMGTPEZY" : "kMGTPEZY";
  double unit = base;
  std::size_t i = 0;
  for (; i + 1 < prefixes.size() && bytes >= unit * base; ++i) unit *= base;
  return fmt::format("{:.1f} {}{}", bytes / unit, prefixes[i], binary ? "iB" : "B");
}

const std::string& require_text(const Value& self) {
  require_defined(self);
  if (self.string() == nullptr) throw failure("a str is needed, not {}", type_name(self));
  return *self.string();
}

Value indent(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  const Value* width = arguments.find(0, "width");
  const std::string margin = width != nullptr && width->string() != nullptr
                                 ? *width->string()
                                 : std::string(static_cast<std::size_t>(std::clamp<std::int64_t>(
                                                   arguments.integer_or(0, "width", 4), 0, 10'000)),
                                               ' ');
  const bool first = arguments.truth_or(1, "first", false);
  const bool blank = arguments.truth_or(2, "blank", false);
  interpreter.budget().make_string(require_text(self).size());
  const std::string text = require_text(self) + "\n";
  std::string result;
  bool is_first = true;
  for (const std::string_view line : split_lines(text, false)) {
    interpreter.budget().grow_string(result.size(), margin.size() + line.size() + 1);
    if (!is_first) result.push_back('\n');
    if (is_first ? first : blank || !line.empty()) result += margin;
    result += line;
    is_first = false;
  }
  return result;
}

Value truncate(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  const std::string& text = require_text(self);
  interpreter.budget().make_string(text.size());
  const std::string_view end = arguments.text_or(2, "end", "...");
  const std::vector<std::string_view> parts = characters(text);
  const auto size = static_cast<std::int64_t>(parts.size());
  const std::int64_t length = std::clamp<std::int64_t>(arguments.integer_or(0, "length", 255), 0, size);
  if (size - length <= arguments.integer_or(3, "leeway", 5)) return text;
  std::string kept;
  for (std::int64_t i = 0; i < length - text_length(end); ++i) kept += parts[static_cast<std::size_t>(i)];
  if (!arguments.truth_or(1, "killwords", false)) {
    const std::size_t space = kept.rfind(' ');
    if (space != std::string::npos) kept.resize(space);
  }
  return kept + std::string(end);
}

Value word_count(Interpreter& interpreter, const Value& self, const Arguments&) {
  const std::string text = to_text(self, interpreter.budget());
  std::int64_t count = 0;
  bool in_word = false;
  for (const char c : text) {
    const bool part = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || (c & 0x80) != 0;
    if (part && !in_word) ++count;
    in_word = part;
  }
  return count;
}

// `in_query`: as a part of a query, where a slash is quoted and a space is a plus sign.
std::string quote_url(std::string_view text, bool in_query) {
  constexpr std::string_view kSafe = "_.-~";
  std::string result;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (in_query && c == ' ') {
      result.push_back('+');
    } else if ((byte < 0x80 && (std::isalnum(byte) != 0 || kSafe.find(c) != std::string_view::npos)) ||
               (c == '/' && !in_query)) {
      result.push_back(c);
    } else {
      result += fmt::format("%{:02X}", byte);
    }
  }
  return result;
}

// A text, or the pairs of a dict or list as a query.
Value url_encode(Interpreter& interpreter, const Value& self, const Arguments&) {
  if (self.dict() == nullptr && self.sequence() == nullptr) {
    std::string result = quote_url(to_text(self, interpreter.budget()), false);
    interpreter.budget().make_string(result.size());
    return result;
  }
  const Value pairs = self.dict() != nullptr ? find_method(self, "items")(interpreter, self, {}) : self;
  std::string result;
  for (const Value& item : interpreter.iterate(pairs)->items) {
    const auto pair = interpreter.iterate(item);
    if (pair->items.size() != 2) throw Failure("urlencode takes pairs");
    const auto quoted = [&](std::size_t i) {
      return quote_url(to_text(pair->items[i], interpreter.budget()), true);
    };
    const std::string one = fmt::format("{}{}={}", result.empty() ? "" : "&", quoted(0), quoted(1));
    interpreter.budget().grow_string(result.size(), one.size());
    result += one;
  }
  return result;
}

Value default_value(Interpreter&, const Value& self, const Arguments& arguments) {
  const bool replace_false = arguments.truth_or(1, "boolean", false);
  if (!self.is_undefined() && (!replace_false || is_true(self))) return self;
  const Value* fallback = arguments.find(0, "default_value");
  return fallback != nullptr ? *fallback : Value("");
}

Value absolute(Interpreter&, const Value& self, const Arguments&) {
  require_defined(self);
  if (self.floating() != nullptr) return std::abs(*self.floating());
  if (self.integer() == nullptr) throw failure("bad operand type for abs(): '{}'", type_name(self));
  return *self.integer() < 0 ? apply(UnaryOperator::kNegate, self) : self;
}

Value round_number(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  require_defined(self);
  const std::int64_t precision = std::clamp<std::int64_t>(arguments.integer_or(0, "precision", 0), -300, 300);
  const std::string_view method = arguments.text_or(1, "method", "common");
  if (self.boolean() != nullptr)
    return round_number(interpreter, std::int64_t{*self.boolean() ? 1 : 0}, arguments);
  if (self.floating() == nullptr && self.integer() == nullptr)
    throw failure("type {} doesn't define __round__ method", type_name(self));
  const double value = self.floating() != nullptr ? *self.floating() : static_cast<double>(*self.integer());
  const double scale = std::pow(10.0, static_cast<double>(precision));
  if (method == "ceil") return std::ceil(value * scale) / scale;
  if (method == "floor") return std::floor(value * scale) / scale;
  if (method != "common") throw Failure("method must be common, ceil or floor");
  if (self.integer() != nullptr && precision >= 0) return self;
  if (precision < 0) return std::nearbyint(value * scale) / scale;
  // The decimal text rounds as Python does: the exact binary value, halves to even.
  const std::string text = fmt::format("{:.{}f}", value, static_cast<int>(precision));
  double rounded = value;
  std::from_chars(text.data(), text.data() + text.size(), rounded);
  return rounded;
}

// The number that `text` is as a whole, but for white space around it.
template <class Number, class... Format>
std::optional<Number> parse_number(std::string_view text, Format... format) {
  text = strip(text);
  if (text.starts_with('+')) text.remove_prefix(1);
  Number value{};
  const auto [stop, problem] = std::from_chars(text.data(), text.data() + text.size(), value, format...);
  if (problem != std::errc() || stop != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<std::int64_t> truncate_to_integer(double value) {
  constexpr double kLimit = 9223372036854775808.0;
  if (!(value > -kLimit && value < kLimit)) return std::nullopt;
  return static_cast<std::int64_t>(value);
}

Value to_integer(Interpreter&, const Value& self, const Arguments& arguments) {
  const Value* given = arguments.find(0, "default");
  const Value fallback = given != nullptr ? *given : Value(std::int64_t{0});
  const std::int64_t base = arguments.integer_or(1, "base", 10);
  if (base < 2 || base > 36) throw Failure("int() base must be >= 2 and <= 36");
  if (self.integer() != nullptr) return self;
  if (self.boolean() != nullptr) return std::int64_t{*self.boolean() ? 1 : 0};
  std::optional<std::int64_t> value;
  if (self.floating() != nullptr) {
    value = truncate_to_integer(*self.floating());
  } else if (self.string() != nullptr) {
    value = parse_number<std::int64_t>(*self.string(), static_cast<int>(base));
    if (!value) {
      if (const auto floating = parse_number<double>(*self.string())) value = truncate_to_integer(*floating);
    }
  }
  return value ? Value(*value) : fallback;
}

Value to_float(Interpreter&, const Value& self, const Arguments& arguments) {
  const Value* given = arguments.find(0, "default");
  if (self.floating() != nullptr) return self;
  if (self.integer() != nullptr) return static_cast<double>(*self.integer());
  if (self.boolean() != nullptr) return *self.boolean() ? 1.0 : 0.0;
  if (self.string() != nullptr) {
    if (const auto value = parse_number<double>(*self.string())) return *value;
  }
  return given != nullptr ? *given : Value(0.0);
}

// tojson of transformers: json.dumps with ensure_ascii=False, not Jinja2's own, which escapes HTML.
Value to_json_text(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  JsonStyle style;
  const Value* indent = arguments.find(1, "indent");
  if (indent == nullptr) indent = arguments.find(0, "indent");
  if (indent != nullptr && (indent->integer() != nullptr || indent->string() != nullptr)) {
    style.multi_line = true;
    style.item_separator = ',';
    const std::int64_t width =
        indent->integer() != nullptr ? std::clamp<std::int64_t>(*indent->integer(), 0, 1000) : 0;
    style.indent =
        indent->string() != nullptr ? *indent->string() : std::string(static_cast<std::size_t>(width), ' ');
  }
  if (const Value* separators = arguments.find(2, "separators");
      separators != nullptr && !separators->is_none()) {
    const auto pair = interpreter.iterate(*separators);
    if (pair->items.size() != 2 || pair->items[0].string() == nullptr || pair->items[1].string() == nullptr) {
      throw Failure("separators must be two strings");
    }
    style.item_separator = *pair->items[0].string();
    style.key_separator = *pair->items[1].string();
  }
  style.sort_keys = arguments.truth_or(3, "sort_keys", false);
  return to_json(self, style, interpreter.budget());
}

Value get_named_attribute(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  return interpreter.get_attribute(self, arguments.text(0, "name"));
}

constexpr NamedBuiltin kFilters[] = {
    {"abs", absolute},
    {"attr", get_named_attribute},
    {"capitalize", map_as_text<capitalize>},
    {"center", center},
    {"d", default_value},
    {"default", default_value},
    {"e", escape},
    {"escape", escape},
    {"filesizeformat", file_size},
    {"float", to_float},
    {"forceescape", escape},
    {"format", format},
    {"indent", indent},
    {"int", to_integer},
    {"lower", map_as_text<to_lower>},
    {"replace", replace_as_text},
    {"round", round_number},
    {"safe", as_string},
    {"string", as_string},
    {"title", map_as_text<title_case>},
    {"tojson", to_json_text},
    {"trim", trim},
    {"truncate", truncate},
    {"upper", map_as_text<to_upper>},
    {"urlencode", url_encode},
    {"wordcount", word_count},
    {"xmlattr", xml_attributes},
};

}  // namespace

std::span<const NamedBuiltin> text_filters() {
  return kFilters;
}

Builtin find_filter(std::string_view name) {
  for (const std::span<const NamedBuiltin> filters : {text_filters(), sequence_filters()}) {
    const auto found = std::ranges::find(filters, name, &NamedBuiltin::name);
    if (found != filters.end()) return found->function;
  }
  return nullptr;
}

}  // namespace eider::jinja
