#include "text/jinja/format_spec.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "text/jinja/operators.h"
#include "text/jinja/python_text.h"
#include "text/utf8.h"

namespace eider::jinja {

namespace {

constexpr int kMaxPrecision = 1000;

bool is_any(char c, std::string_view set) {
  return c != '\0' && set.find(c) != std::string_view::npos;
}

// The decimal number that `text` begins with, which is taken off it; absent where there is none.
std::optional<std::int64_t> take_number(std::string_view& text) {
  std::int64_t number = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (end == text.data() || text.front() == '-') return std::nullopt;
  if (problem != std::errc()) throw Failure("Too many decimal digits in format string");
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

char take_any(std::string_view& text, std::string_view set, char otherwise) {
  if (text.empty() || !is_any(text.front(), set)) return otherwise;
  const char c = text.front();
  text.remove_prefix(1);
  return c;
}

int take_precision(std::string_view& text) {
  const auto precision = take_number(text);
  if (!precision) throw Failure("Format specifier missing precision");
  if (*precision > kMaxPrecision)
    throw failure("a precision of more than {} is not supported", kMaxPrecision);
  return static_cast<int>(*precision);
}

// Puts a separator between groups of `size` digits of the whole part that `digits` begins with.
std::string group_digits(std::string_view digits, char separator, std::size_t size) {
  const auto is_digit = [](char c) { return std::isxdigit(static_cast<unsigned char>(c)) != 0; };
  const auto whole = static_cast<std::size_t>(std::ranges::find_if_not(digits, is_digit) - digits.begin());
  std::string grouped;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && i < whole && (whole - i) % size == 0) grouped.push_back(separator);
    grouped.push_back(digits[i]);
  }
  return grouped;
}

std::string pad(std::string_view before, std::string_view body, const FormatSpec& spec, char own_align,
                Budget& budget) {
  const std::int64_t length = text_length(before) + text_length(body);
  const auto missing = static_cast<std::size_t>(std::max<std::int64_t>(spec.width - length, 0));
  if (missing > (std::size_t{1} << 30)) throw Failure("a padded string is too long");
  budget.make_string(before.size() + body.size() + missing * spec.fill.size());
  const char align = spec.align != '\0' ? spec.align : own_align;
  const std::size_t left = align == '>' ? missing : align == '^' ? missing / 2 : 0;
  const std::size_t inside = align == '=' ? missing : 0;
  std::string result;
  const auto fill = [&](std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) result += spec.fill;
  };
  fill(left);
  result += before;
  fill(inside);
  result += body;
  fill(missing - left - inside);
  return result;
}

std::string_view sign_of(bool negative, char sign) {
  if (negative) return "-";
  return sign == '+' ? "+" : sign == ' ' ? " " : "";
}

std::string format_integer(std::int64_t value, const FormatSpec& spec, Budget& budget) {
  if (spec.precision) throw Failure("Precision not allowed in integer format specifier");
  const std::uint64_t magnitude =
      value < 0 ? 0 - static_cast<std::uint64_t>(value) : static_cast<std::uint64_t>(value);
  std::string digits;
  std::string_view prefix;
  switch (spec.type) {
    case 'x':
    case 'X':
      digits = spec.type == 'x' ? fmt::format("{:x}", magnitude) : fmt::format("{:X}", magnitude);
      prefix = spec.type == 'x' ? "0x" : "0X";
      break;
    case 'o':
      digits = fmt::format("{:o}", magnitude);
      prefix = "0o";
      break;
    case 'b':
      digits = fmt::format("{:b}", magnitude);
      prefix = "0b";
      break;
    default:
      digits = fmt::format("{}", magnitude);
  }
  const std::size_t group = prefix.empty() ? 3 : 4;
  if (spec.grouping == ',' && group == 4) throw failure("Cannot specify ',' with '{}'.", spec.type);
  if (spec.grouping != '\0') digits = group_digits(digits, spec.grouping, group);
  const std::string before =
      std::string(sign_of(value < 0, spec.sign)) + std::string(spec.alternate ? prefix : "");
  return pad(before, digits, spec, '>', budget);
}

std::string float_digits(double magnitude, const FormatSpec& spec) {
  const int precision = spec.precision.value_or(6);
  const bool finite = std::isfinite(magnitude);
  switch (spec.type) {
    case '\0': {
      if (!spec.precision) return format_float(magnitude);
      std::string digits = fmt::format("{:.{}g}", magnitude, std::max(precision, 1));
      if (finite && digits.find_first_of(".e") == std::string::npos) digits += ".0";
      return digits;
    }
    case 'e':
      return fmt::format("{:.{}e}", magnitude, precision);
    case 'E':
      return fmt::format("{:.{}E}", magnitude, precision);
    case 'g':
    case 'n':
      return fmt::format("{:.{}g}", magnitude, std::max(precision, 1));
    case 'G':
      return fmt::format("{:.{}G}", magnitude, std::max(precision, 1));
    case '%':
      return fmt::format("{:.{}f}%", magnitude * 100, precision);
    case 'F':
      return fmt::format("{:.{}F}", magnitude, precision);
    default:
      return fmt::format("{:.{}f}", magnitude, precision);
  }
}

std::string format_floating(double value, const FormatSpec& spec, Budget& budget) {
  if (spec.alternate) throw Failure("alternate form (#) of floats is not supported");
  std::string digits = float_digits(std::abs(value), spec);
  if (spec.grouping != '\0') digits = group_digits(digits, spec.grouping, 3);
  return pad(sign_of(std::signbit(value) && !std::isnan(value), spec.sign), digits, spec, '>', budget);
}

std::string format_text(std::string_view text, const FormatSpec& spec, char own_align, Budget& budget) {
  if (spec.precision) {
    std::size_t end = 0;
    for (int i = 0; i < *spec.precision && end < text.size(); ++i) end += character_size(text.substr(end));
    text = text.substr(0, end);
  }
  return pad("", text, spec, own_align, budget);
}

[[noreturn]] void fail_type(char type, const Value& value) {
  throw failure("Unknown format code '{}' for object of type '{}'", type, type_name(value));
}

std::string format_number(const Value& value, const FormatSpec& spec, Budget& budget) {
  constexpr std::string_view kIntegerTypes = "dnxXob", kFloatTypes = "eEfFgGn%";
  if (const double* floating = value.floating()) {
    if (spec.type != '\0' && !is_any(spec.type, kFloatTypes)) fail_type(spec.type, value);
    return format_floating(*floating, spec, budget);
  }
  const std::int64_t integer = value.integer() != nullptr ? *value.integer() : (*value.boolean() ? 1 : 0);
  if (spec.type == '\0' || is_any(spec.type, kIntegerTypes)) return format_integer(integer, spec, budget);
  if (is_any(spec.type, kFloatTypes)) return format_floating(static_cast<double>(integer), spec, budget);
  fail_type(spec.type, value);
}

}  // namespace

FormatSpec parse_format_spec(std::string_view text) {
  const std::string_view whole = text;
  FormatSpec spec;
  if (text.empty()) return spec;
  const std::size_t first = character_size(text);
  if (text.size() > first && is_any(text[first], "<>^=")) {
    spec.fill = text.substr(0, first);
    spec.align = text[first];
    text.remove_prefix(first + 1);
  } else {
    spec.align = take_any(text, "<>^=", '\0');
  }
  spec.sign = take_any(text, "+- ", '-');
  spec.alternate = take_any(text, "#", '\0') != '\0';
  if (take_any(text, "0", '\0') != '\0' && spec.align == '\0') {
    spec.fill = "0";
    spec.align = '=';
  }
  spec.width = take_number(text).value_or(0);
  spec.grouping = take_any(text, ",_", '\0');
  if (take_any(text, ".", '\0') != '\0') spec.precision = take_precision(text);
  spec.type = take_any(text, "sdnxXobeEfFgG%", '\0');
  if (!text.empty()) throw failure("Invalid format specifier '{}'", whole);
  return spec;
}

std::string format_value(const Value& value, const FormatSpec& spec, Budget& budget) {
  if (value.integer() != nullptr || value.floating() != nullptr || value.boolean() != nullptr)
    return format_number(value, spec, budget);
  const std::string text = to_text(value, budget);
  if (value.string() == nullptr && !value.is_undefined())
    throw failure("unsupported format string passed to {}.__format__", type_name(value));
  if (spec.type != '\0' && spec.type != 's') fail_type(spec.type, value);
  if (spec.align == '=' || spec.sign != '-' || spec.alternate || spec.grouping != '\0')
    throw Failure("sign, '=', '#' and grouping are not allowed in string format specifiers");
  return format_text(text, spec, '<', budget);
}

namespace {

// The conversions of one text % arguments.
class PercentFormatter {
 public:
  PercentFormatter(const Value& arguments, Budget& budget)
      : arguments_(arguments),
        tuple_(arguments.sequence() != nullptr && arguments.sequence()->kind == Sequence::Kind::kTuple
                   ? arguments.sequence()
                   : nullptr),
        budget_(budget) {}

  std::string format(std::string_view text) {
    std::string result;
    const auto append = [&](std::string_view part) {
      budget_.grow_string(result.size(), part.size());
      result += part;
    };
    while (!text.empty()) {
      const std::size_t percent = std::min(text.find('%'), text.size());
      append(text.substr(0, percent));
      text.remove_prefix(percent);
      if (text.empty()) break;
      text.remove_prefix(1);
      append(convert(text));
    }
    const bool rest = tuple_ != nullptr ? used_ < tuple_->items.size() : used_ == 0 && !named_;
    // What has items by name may be left over, as Python has it.
    if (rest && arguments_.dict() == nullptr && (tuple_ != nullptr || arguments_.sequence() == nullptr))
      throw Failure("not all arguments converted during string formatting");
    return result;
  }

 private:
  const Value& next() {
    if (tuple_ != nullptr ? used_ >= tuple_->items.size() : used_ > 0)
      throw Failure("not enough arguments for format string");
    return tuple_ != nullptr ? tuple_->items[used_++] : (++used_, arguments_);
  }

  // A conversion behind its %, which is taken off `text`.
  std::string convert(std::string_view& text) {
    const Value* named = nullptr;
    if (text.starts_with('(')) named = take_named(text);
    FormatSpec spec;
    bool zero = false;
    for (char flag = take_any(text, "-+ #0", '\0'); flag != '\0'; flag = take_any(text, "-+ #0", '\0')) {
      if (flag == '-') spec.align = '<';
      if (flag == '+' || (flag == ' ' && spec.sign != '+')) spec.sign = flag;
      if (flag == '#') spec.alternate = true;
      if (flag == '0') zero = true;
    }
    spec.width = text.starts_with('*') ? take_star(text) : take_number(text).value_or(0);
    if (take_any(text, ".", '\0') != '\0') spec.precision = take_precision(text);
    if (text.empty()) throw Failure("incomplete format");
    spec.type = text.front();
    text.remove_prefix(1);
    if (spec.type == '%') return "%";
    if (zero && spec.align == '\0' && spec.type != 's' && spec.type != 'r' && spec.type != 'c') {
      spec.fill = "0";
      spec.align = '=';
    }
    return print(named != nullptr ? *named : next(), spec);
  }

  const Value* take_named(std::string_view& text) {
    const std::size_t end = text.find(')');
    if (end == std::string_view::npos) throw Failure("incomplete format key");
    if (arguments_.dict() == nullptr) throw Failure("format requires a mapping");
    const std::string_view name = text.substr(1, end - 1);
    budget_.spend(1 + arguments_.dict()->entries.size() / 8);
    const Value* found = arguments_.dict()->find(name);
    if (found == nullptr) throw failure("'{}'", name);
    text.remove_prefix(end + 1);
    named_ = true;
    return found;
  }

  std::int64_t take_star(std::string_view& text) {
    text.remove_prefix(1);
    const Value& width = next();
    if (width.integer() == nullptr || *width.integer() < 0) throw Failure("* wants a width that is an int");
    return *width.integer();
  }

  std::string print(const Value& value, FormatSpec spec) {
    switch (spec.type) {
      case 's':
        return format_text(to_text(value, budget_), spec, '>', budget_);
      case 'r':
        return format_text(to_repr(value, budget_), spec, '>', budget_);
      case 'c':
        return format_text(character(value), spec, '>', budget_);
      case 'd':
      case 'i':
      case 'u':
        return print_integer(value, spec);
      case 'x':
      case 'X':
      case 'o':
        if (value.floating() != nullptr)
          throw failure("%{} format: an integer is required, not float", spec.type);
        return print_integer(value, spec);
      case 'e':
      case 'E':
      case 'f':
      case 'F':
      case 'g':
      case 'G':
        require_number(value, spec.type);
        if (spec.align == '\0') spec.align = '>';
        return format_value(value, spec, budget_);
      default:
        throw failure("unsupported format character '{}'", spec.type);
    }
  }

  static void require_number(const Value& value, char type) {
    require_defined(value);
    if (value.integer() == nullptr && value.floating() == nullptr && value.boolean() == nullptr)
      throw failure("%{} format: a number is required, not {}", type, type_name(value));
  }

  static std::string character(const Value& value) {
    require_defined(value);
    if (value.string() != nullptr && text_length(*value.string()) == 1) return *value.string();
    constexpr std::int64_t kLast = 0x10FFFF;
    if (value.integer() == nullptr || *value.integer() < 0 || *value.integer() > kLast)
      throw Failure("%c requires int or char");
    std::string text;
    append_utf8(text, static_cast<char32_t>(*value.integer()));
    return text;
  }

  std::string print_integer(const Value& value, FormatSpec spec) {
    require_number(value, spec.type);
    if (spec.type == 'i' || spec.type == 'u') spec.type = 'd';
    if (spec.precision) throw Failure("a precision of integers is not supported in % formatting");
    if (value.floating() == nullptr) return format_value(value, spec, budget_);
    const double whole = std::trunc(*value.floating());
    if (!(std::abs(whole) < 9223372036854775808.0)) throw Failure("an integer leaves 64 bits");
    return format_value(static_cast<std::int64_t>(whole), spec, budget_);
  }

  const Value& arguments_;
  const Sequence* tuple_;
  Budget& budget_;
  std::size_t used_ = 0;
  bool named_ = false;
};

}  // namespace

std::string format_percent(std::string_view text, const Value& arguments, Budget& budget) {
  return PercentFormatter(arguments, budget).format(text);
}

}  // namespace eider::jinja
