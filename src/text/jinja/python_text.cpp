#include "text/jinja/python_text.h"

#include <fmt/format.h>
#include <utf8proc.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "text/utf8.h"

namespace eider::jinja {

namespace {

Utf8Character first(std::string_view text) {
  Utf8Character character = first_utf8(text);
  if (character.status != Utf8Status::kComplete) character.length = 1;
  return character;
}

bool is_valid(const Utf8Character& character) {
  return character.status == Utf8Status::kComplete;
}

// Bytes of the last character of `text` (not empty).
std::size_t last_size(std::string_view text) {
  std::size_t size = 1;
  while (size < text.size() && size < 4 &&
         (static_cast<std::uint8_t>(text[text.size() - size]) & 0xC0) == 0x80) {
    ++size;
  }
  return character_size(text.substr(text.size() - size)) == size ? size : 1;
}

bool in_strip_set(std::string_view character, std::string_view set) {
  if (set.empty()) return is_space(first_utf8(character).code_point);
  for (; !set.empty(); set.remove_prefix(character_size(set))) {
    if (set.substr(0, character_size(set)) == character) return true;
  }
  return false;
}

template <class MapCharacter>
std::string map_characters(std::string_view text, MapCharacter map) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const Utf8Character character = first(text);
    if (is_valid(character)) {
      map(result, character.code_point);
    } else {
      result.append(text.substr(0, character.length));
    }
    text.remove_prefix(character.length);
  }
  return result;
}

void append_upper(std::string& result, char32_t code_point) {
  constexpr char32_t kSharpS = 0xDF;
  if (code_point == kSharpS) {
    result.append("SS");
  } else {
    append_utf8(result, static_cast<char32_t>(utf8proc_toupper(static_cast<utf8proc_int32_t>(code_point))));
  }
}

void append_lower(std::string& result, char32_t code_point) {
  append_utf8(result, static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(code_point))));
}

void append_title(std::string& result, char32_t code_point) {
  append_utf8(result, static_cast<char32_t>(utf8proc_totitle(static_cast<utf8proc_int32_t>(code_point))));
}

bool is_cased(char32_t code_point) {
  const auto category = utf8proc_category(static_cast<utf8proc_int32_t>(code_point));
  return category == UTF8PROC_CATEGORY_LU || category == UTF8PROC_CATEGORY_LL ||
         category == UTF8PROC_CATEGORY_LT;
}

std::vector<std::string_view> split_at_space(std::string_view text, std::int64_t limit) {
  std::vector<std::string_view> parts;
  text = strip_left(text);
  while (!text.empty()) {
    if (limit >= 0 && std::cmp_equal(parts.size(), limit)) {
      parts.push_back(text);
      break;
    }
    std::size_t end = 0;
    while (end < text.size() && !is_space(first(text.substr(end)).code_point))
      end += character_size(text.substr(end));
    parts.push_back(text.substr(0, end));
    text = strip_left(text.substr(end));
  }
  return parts;
}

std::vector<std::string_view> split_right_at_space(std::string_view text, std::int64_t limit) {
  std::vector<std::string_view> parts;
  text = strip_right(text);
  while (!text.empty()) {
    if (limit >= 0 && std::cmp_equal(parts.size(), limit)) {
      parts.push_back(text);
      break;
    }
    std::size_t begin = text.size();
    while (begin > 0) {
      const std::size_t size = last_size(text.substr(0, begin));
      if (is_space(first(text.substr(begin - size)).code_point)) break;
      begin -= size;
    }
    parts.push_back(text.substr(begin));
    text = strip_right(text.substr(0, begin));
  }
  std::ranges::reverse(parts);
  return parts;
}

bool is_printable(char32_t code_point) {
  if (code_point == ' ') return true;
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(code_point))) {
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
    case UTF8PROC_CATEGORY_ZS:
      return false;
    default:
      return true;
  }
}

void append_escaped(std::string& result, char32_t code_point) {
  const auto value = static_cast<std::uint32_t>(code_point);
  switch (code_point) {
    case '\n':
      result += "\\n";
      return;
    case '\r':
      result += "\\r";
      return;
    case '\t':
      result += "\\t";
      return;
    case '\\':
      result += "\\\\";
      return;
    default:
      break;
  }
  if (is_printable(code_point)) {
    append_utf8(result, code_point);
  } else if (value < 0x100) {
    result += fmt::format("\\x{:02x}", value);
  } else if (value < 0x10000) {
    result += fmt::format("\\u{:04x}", value);
  } else {
    result += fmt::format("\\U{:08x}", value);
  }
}

}  // namespace

std::size_t character_size(std::string_view text) {
  return first(text).length;
}

std::int64_t text_length(std::string_view text) {
  std::int64_t length = 0;
  for (; !text.empty(); text.remove_prefix(character_size(text))) ++length;
  return length;
}

std::vector<std::string_view> characters(std::string_view text) {
  std::vector<std::string_view> result;
  while (!text.empty()) {
    result.push_back(text.substr(0, character_size(text)));
    text.remove_prefix(result.back().size());
  }
  return result;
}

bool is_space(char32_t c) {
  return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F ||
         c == 0x3000;
}

std::string_view strip_left(std::string_view text, std::string_view set) {
  while (!text.empty()) {
    const std::size_t size = character_size(text);
    if (!in_strip_set(text.substr(0, size), set)) break;
    text.remove_prefix(size);
  }
  return text;
}

std::string_view strip_right(std::string_view text, std::string_view set) {
  while (!text.empty()) {
    const std::size_t size = last_size(text);
    if (!in_strip_set(text.substr(text.size() - size), set)) break;
    text.remove_suffix(size);
  }
  return text;
}

std::string_view strip(std::string_view text, std::string_view set) {
  return strip_right(strip_left(text, set), set);
}

std::string to_lower(std::string_view text) {
  return map_characters(text, append_lower);
}

std::string to_upper(std::string_view text) {
  return map_characters(text, append_upper);
}

std::string capitalize(std::string_view text) {
  bool at_start = true;
  return map_characters(text, [&](std::string& result, char32_t code_point) {
    at_start ? append_title(result, code_point) : append_lower(result, code_point);
    at_start = false;
  });
}

std::string title_case(std::string_view text) {
  bool in_word = false;
  return map_characters(text, [&](std::string& result, char32_t code_point) {
    in_word ? append_lower(result, code_point) : append_title(result, code_point);
    in_word = is_cased(code_point);
  });
}

std::string swap_case(std::string_view text) {
  return map_characters(text, [](std::string& result, char32_t code_point) {
    const bool upper = utf8proc_category(static_cast<utf8proc_int32_t>(code_point)) == UTF8PROC_CATEGORY_LU;
    upper ? append_lower(result, code_point) : append_upper(result, code_point);
  });
}

std::vector<std::string_view> split(std::string_view text, std::string_view separator, std::int64_t limit) {
  if (separator.empty()) return split_at_space(text, limit);
  std::vector<std::string_view> parts;
  while (limit < 0 || std::cmp_less(parts.size(), limit)) {
    const std::size_t at = text.find(separator);
    if (at == std::string_view::npos) break;
    parts.push_back(text.substr(0, at));
    text.remove_prefix(at + separator.size());
  }
  parts.push_back(text);
  return parts;
}

std::vector<std::string_view> split_right(std::string_view text, std::string_view separator,
                                          std::int64_t limit) {
  if (separator.empty()) return split_right_at_space(text, limit);
  std::vector<std::string_view> parts;
  while (limit < 0 || std::cmp_less(parts.size(), limit)) {
    const std::size_t at = text.rfind(separator);
    if (at == std::string_view::npos) break;
    parts.push_back(text.substr(at + separator.size()));
    text = text.substr(0, at);
  }
  parts.push_back(text);
  std::ranges::reverse(parts);
  return parts;
}

std::vector<std::string_view> split_lines(std::string_view text, bool keep_ends) {
  const auto ends_line = [](char32_t c) {
    return (c >= 0x0A && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 || c == 0x2029;
  };
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    std::size_t end = 0;
    std::size_t next = 0;
    while (next == 0 && end < text.size()) {
      const Utf8Character character = first(text.substr(end));
      if (is_valid(character) && ends_line(character.code_point)) {
        next = end + (text.substr(end).starts_with("\r\n") ? 2 : character.length);
      } else {
        end += character.length;
      }
    }
    if (next == 0) next = end;
    lines.push_back(text.substr(0, keep_ends ? next : end));
    text.remove_prefix(next);
  }
  return lines;
}

std::int64_t count_occurrences(std::string_view text, std::string_view part) {
  if (part.empty()) return text_length(text) + 1;
  std::int64_t count = 0;
  for (std::size_t at = text.find(part); at != std::string_view::npos; at = text.find(part, at + part.size()))
    ++count;
  return count;
}

std::string replace(std::string_view text, std::string_view from, std::string_view to, std::int64_t limit) {
  std::string result;
  std::int64_t done = 0;
  const auto allowed = [&] { return limit < 0 || done < limit; };
  if (from.empty()) {  // before every character and at the end
    for (; !text.empty(); text.remove_prefix(character_size(text))) {
      if (allowed()) result.append(to), ++done;
      result.append(text.substr(0, character_size(text)));
    }
    if (allowed()) result.append(to);
    return result;
  }
  for (; allowed(); ++done) {
    const std::size_t at = text.find(from);
    if (at == std::string_view::npos) break;
    result.append(text.substr(0, at)).append(to);
    text.remove_prefix(at + from.size());
  }
  return result.append(text);
}

std::string quote(std::string_view text) {
  const bool single = text.find('\'') == std::string_view::npos || text.find('"') != std::string_view::npos;
  const char mark = single ? '\'' : '"';
  std::string result(1, mark);
  result += map_characters(text, [mark](std::string& escaped, char32_t code_point) {
    if (code_point == static_cast<char32_t>(mark)) escaped.push_back('\\');
    append_escaped(escaped, code_point);
  });
  return result + mark;
}

std::string format_float(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  // to_chars gives the shortest digits; Python's repr writes them plainly for exponents from -4 to 15.
  char buffer[32];
  const auto [end, problem] =
      std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific);
  const std::string_view scientific(buffer, static_cast<std::size_t>(end - buffer));
  const std::size_t e = scientific.find('e');
  int exponent = 0;
  const char* exponent_begin = scientific.data() + e + (scientific[e + 1] == '+' ? 2 : 1);
  std::from_chars(exponent_begin, scientific.data() + scientific.size(), exponent);
  if (exponent < -4 || exponent >= 16) return std::string(scientific);
  std::string digits(scientific.substr(0, e));
  const bool negative = digits.front() == '-';
  std::erase_if(digits, [](char c) { return c == '-' || c == '.'; });
  if (exponent < 0) {
    digits.insert(0, static_cast<std::size_t>(-exponent), '0');
    digits.insert(1, 1, '.');
  } else {
    const auto whole = static_cast<std::size_t>(exponent) + 1;
    if (digits.size() <= whole) digits.append(whole + 1 - digits.size(), '0');
    digits.insert(whole, 1, '.');
  }
  return negative ? "-" + digits : digits;
}

}  // namespace eider::jinja
