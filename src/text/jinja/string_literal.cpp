#include "text/jinja/string_literal.h"

#include <charconv>
#include <cstdint>

#include "text/jinja/failure.h"
#include "text/utf8.h"

namespace eider::jinja {

namespace {

// Takes `digits` hexadecimal digits off the front of `rest`.
char32_t take_hex(std::string_view& rest, std::size_t digits, std::uint32_t offset) {
  std::uint32_t value = 0;
  if (rest.size() < digits) throw Failure("a string's escape lacks digits", offset);
  const auto [stop, problem] = std::from_chars(rest.data(), rest.data() + digits, value, 16);
  if (problem != std::errc() || stop != rest.data() + digits)
    throw Failure("a string's escape lacks digits", offset);
  rest.remove_prefix(digits);
  return value;
}

char32_t take_octal(std::string_view& rest) {
  char32_t value = 0;
  for (int i = 0; i < 3 && !rest.empty() && rest[0] >= '0' && rest[0] <= '7'; ++i) {
    value = value * 8 + static_cast<char32_t>(rest[0] - '0');
    rest.remove_prefix(1);
  }
  return value;
}

void append_code_point(std::string& result, char32_t code_point) {
  const bool scalar = code_point <= 0x10FFFF && (code_point < 0xD800 || code_point > 0xDFFF);
  append_utf8(result, scalar ? code_point : kReplacementCharacter);
}

}  // namespace

std::string unescape(std::string_view literal, std::uint32_t offset) {
  constexpr std::string_view kEscapes = "abfnrtv\\'\"\n";
  constexpr std::string_view kValues = "\a\b\f\n\r\t\v\\'\"";  // an escaped newline stands for nothing
  std::string result;
  while (!literal.empty()) {
    const char c = literal[0];
    literal.remove_prefix(1);
    if (c != '\\' || literal.empty()) {
      result.push_back(c);
      continue;
    }
    const char escape = literal[0];
    if (const std::size_t known = kEscapes.find(escape); known != std::string_view::npos) {
      literal.remove_prefix(1);
      if (known < kValues.size()) result.push_back(kValues[known]);
    } else if (escape >= '0' && escape <= '7') {
      append_code_point(result, take_octal(literal));
    } else if (escape == 'x' || escape == 'u' || escape == 'U') {
      literal.remove_prefix(1);
      append_code_point(result, take_hex(literal, escape == 'x' ? 2 : escape == 'u' ? 4 : 8, offset));
    } else {
      result.push_back('\\');
    }
  }
  return result;
}

}  // namespace eider::jinja
