#include "text/jinja/lexer.h"

#include <algorithm>
#include <array>
#include <optional>

#include "text/jinja/failure.h"
#include "text/jinja/python_text.h"
#include "text/jinja/string_literal.h"

namespace eider::jinja {

namespace {

constexpr std::array<std::string_view, 26> kOperators = {"**", "//", "==", "!=", ">=", "<=", "+", "-", "/",
                                                         "*",  "%",  "~",  "[",  "]",  "(",  ")", "{", "}",
                                                         ">",  "<",  "=",  ".",  ":",  "|",  ",", ";"};

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_name_start(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || static_cast<std::uint8_t>(c) >= 0x80;
}
bool is_name_part(char c) {
  return is_name_start(c) || is_digit(c);
}

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(source) {}

  std::vector<Token> run() {
    while (position_ < source_.size()) lex_data();
    add(TokenKind::kEnd, {}, position_);
    return std::move(tokens_);
  }

 private:
  // Text up to the next tag, then that tag.
  void lex_data() {
    const std::size_t tag = find_tag(position_);
    if (tag == std::string_view::npos) {
      add_data(source_.substr(position_));
      position_ = source_.size();
      return;
    }
    const char kind = source_[tag + 1];
    const std::string_view text = source_.substr(position_, tag - position_);
    position_ = tag + 2;
    const char sign = take_sign();
    add_data(strip_before(text, sign, kind != '{'));
    line_starts_ = false;
    if (kind == '#') {
      skip_comment(tag);
    } else if (kind == '%' && take_keyword_tag("raw", RawTag::kBegin)) {
      lex_raw(tag);
    } else {
      add(kind == '{' ? TokenKind::kVariableBegin : TokenKind::kBlockBegin, {}, tag);
      lex_tag(kind == '{');
    }
  }

  std::size_t find_tag(std::size_t from) const {
    for (std::size_t at = source_.find('{', from); at != std::string_view::npos;
         at = source_.find('{', at + 1)) {
      if (at + 1 < source_.size() &&
          (source_[at + 1] == '{' || source_[at + 1] == '%' || source_[at + 1] == '#')) {
        return at;
      }
    }
    return std::string_view::npos;
  }

  // The - or + after a tag's opening, or a blank.
  char take_sign() {
    if (position_ < source_.size() && (source_[position_] == '-' || source_[position_] == '+')) {
      return source_[position_++];
    }
    return ' ';
  }

  // '-' strips all white space before a tag; lstrip_blocks strips that of its line, if nothing else stands
  // there.
  std::string_view strip_before(std::string_view text, char sign, bool is_block) const {
    if (sign == '-') return strip_right(text);
    if (sign == '+' || !is_block) return text;
    const std::size_t line = text.rfind('\n') + 1;  // npos + 1 == 0
    if ((line > 0 || line_starts_) && strip_left(text.substr(line)).empty()) return text.substr(0, line);
    return text;
  }

  void add_data(std::string_view text) {
    if (!text.empty()) add(TokenKind::kData, std::string(text), position_);
  }

  void add(TokenKind kind, std::string text, std::size_t offset) {
    tokens_.push_back({kind, std::move(text), static_cast<std::uint32_t>(offset)});
  }

  [[noreturn]] static void fail(std::size_t offset, std::string cause) {
    throw Failure(std::move(cause), static_cast<std::uint32_t>(offset));
  }

  void skip_space() {
    const std::string_view rest = source_.substr(position_);
    position_ += rest.size() - strip_left(rest).size();
  }

  bool take(std::string_view text) {
    if (!source_.substr(position_).starts_with(text)) return false;
    position_ += text.size();
    return true;
  }

  // The end of a block or comment tag: `-` eats the white space after it, no sign one newline (trim_blocks).
  bool take_block_end(std::string_view end) {
    const std::size_t begin = position_;
    if (take("-")) {
      if (take(end)) {
        skip_space();
        return ended(begin);
      }
    } else if (take("+")) {
      if (take(end)) return ended(begin);
    } else if (take(end)) {
      take("\n");
      return ended(begin);
    }
    position_ = begin;
    return false;
  }

  bool take_variable_end() {
    const std::size_t begin = position_;
    if (take("}}")) return ended(begin);
    if (take("-}}")) {
      skip_space();
      return ended(begin);
    }
    return false;
  }

  bool ended(std::size_t begin) {
    line_starts_ = position_ > begin && source_[position_ - 1] == '\n';
    return true;
  }

  void skip_comment(std::size_t tag) {
    const std::size_t end = source_.find("#}", position_);
    if (end == std::string_view::npos) fail(tag, "the comment does not end");
    const bool signed_end = end > position_ && (source_[end - 1] == '-' || source_[end - 1] == '+');
    position_ = signed_end ? end - 1 : end;
    take_block_end("#}");
  }

  enum class RawTag : bool { kBegin, kEnd };

  // After "{%" and its sign: the rest of a raw or endraw tag.
  bool take_keyword_tag(std::string_view keyword, RawTag tag) {
    const std::size_t begin = position_;
    skip_space();
    if (take(keyword)) {
      skip_space();
      // A raw tag keeps the newline after it.
      if (tag == RawTag::kEnd ? take_block_end("%}") : take("%}")) return true;
      if (tag == RawTag::kBegin && take("-%}")) {
        skip_space();
        return true;
      }
    }
    position_ = begin;
    return false;
  }

  void lex_raw(std::size_t tag) {
    const std::size_t begin = position_;
    for (std::size_t at = source_.find("{%", begin); at != std::string_view::npos;
         at = source_.find("{%", at + 1)) {
      position_ = at + 2;
      const char sign = take_sign();
      if (!take_keyword_tag("endraw", RawTag::kEnd)) continue;
      add_data(strip_before(source_.substr(begin, at - begin), sign, true));
      return;
    }
    fail(tag, "the raw block does not end");
  }

  void lex_tag(bool is_variable) {
    const std::size_t tag = position_;
    std::string open;  // brackets, innermost last; an end of tag inside them is none
    while (true) {
      skip_space();
      if (position_ >= source_.size()) fail(tag, "the tag does not end");
      const std::size_t begin = position_;
      if (open.empty() && (is_variable ? take_variable_end() : take_block_end("%}"))) {
        add(is_variable ? TokenKind::kVariableEnd : TokenKind::kBlockEnd, {}, begin);
        return;
      }
      lex_token(open);
    }
  }

  void lex_token(std::string& open) {
    const std::size_t begin = position_;
    const char c = source_[position_];
    if (is_digit(c)) {
      lex_number();
    } else if (is_name_start(c)) {
      while (position_ < source_.size() && is_name_part(source_[position_])) ++position_;
      add(TokenKind::kName, std::string(source_.substr(begin, position_ - begin)), begin);
    } else if (c == '\'' || c == '"') {
      lex_string(c);
    } else {
      const auto* found =
          std::ranges::find_if(kOperators, [&](std::string_view symbol) { return take(symbol); });
      if (found == kOperators.end()) fail(begin, fmt::format("unexpected character '{}'", c));
      balance(open, *found, begin);
      add(TokenKind::kOperator, std::string(*found), begin);
    }
  }

  static void balance(std::string& open, std::string_view symbol, std::size_t offset) {
    constexpr std::string_view kOpening = "([{";
    constexpr std::string_view kClosing = ")]}";
    if (symbol.size() != 1) return;
    if (kOpening.find(symbol[0]) != std::string_view::npos) open.push_back(symbol[0]);
    const std::size_t closing = kClosing.find(symbol[0]);
    if (closing == std::string_view::npos) return;
    if (open.empty() || open.back() != kOpening[closing])
      fail(offset, fmt::format("unexpected '{}'", symbol));
    open.pop_back();
  }

  // Digits with single underscores between them.
  template <class IsDigit>
  std::string take_digits(IsDigit is_one) {
    std::string digits;
    while (position_ < source_.size()) {
      const bool underscore = source_[position_] == '_' && !digits.empty() && position_ + 1 < source_.size();
      const std::size_t at = position_ + (underscore ? 1 : 0);
      if (!is_one(source_[at])) break;
      digits.push_back(source_[at]);
      position_ = at + 1;
    }
    return digits;
  }

  void lex_number() {
    const std::size_t begin = position_;
    const auto is_hex = [](char c) {
      return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
    };
    for (const std::string_view prefix : {"0x", "0X", "0o", "0O", "0b", "0B"}) {
      if (!take(prefix)) continue;
      const std::string digits = take_digits(is_hex);
      add(TokenKind::kInteger, std::string(prefix) + digits, begin);
      return;
    }
    std::string digits = take_digits(is_digit);
    TokenKind kind = TokenKind::kInteger;
    const bool after_dot = begin > 0 && source_[begin - 1] == '.';
    if (!after_dot && position_ + 1 < source_.size() && source_[position_] == '.' &&
        is_digit(source_[position_ + 1])) {
      ++position_;
      digits += '.' + take_digits(is_digit);
      kind = TokenKind::kFloat;
    }
    if (const auto exponent = take_exponent()) {
      digits += *exponent;
      kind = TokenKind::kFloat;
    }
    add(kind, std::move(digits), begin);
  }

  std::optional<std::string> take_exponent() {
    const std::size_t begin = position_;
    if (take("e") || take("E")) {
      std::string exponent = "e";
      if (take("-")) {
        exponent += '-';
      } else {
        take("+");
      }
      const std::string digits = take_digits(is_digit);
      if (!digits.empty()) return exponent + digits;
    }
    position_ = begin;
    return std::nullopt;
  }

  void lex_string(char mark) {
    const std::size_t begin = position_;
    std::size_t end = begin + 1;
    while (end < source_.size() && source_[end] != mark) end += source_[end] == '\\' ? 2 : 1;
    if (end >= source_.size()) fail(begin, "the string does not end");
    add(TokenKind::kString,
        unescape(source_.substr(begin + 1, end - begin - 1), static_cast<std::uint32_t>(begin)), begin);
    position_ = end + 1;
  }

  std::string_view source_;
  std::size_t position_ = 0;
  bool line_starts_ = true;  // whether the text at position_ begins a line
  std::vector<Token> tokens_;
};

}  // namespace

std::string normalize_source(std::string_view source) {
  std::string result;
  result.reserve(source.size());
  for (std::size_t i = 0; i < source.size(); ++i) {
    if (source[i] != '\r') {
      result.push_back(source[i]);
    } else {
      result.push_back('\n');
      if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
    }
  }
  if (result.ends_with('\n')) result.pop_back();
  return result;
}

std::vector<Token> tokenize(std::string_view source) {
  return Lexer(source).run();
}

}  // namespace eider::jinja
