// Lexer: template source to tokens, with Jinja2's white-space rules applied (trim_blocks and lstrip_blocks
// on, keep_trailing_newline off, as transformers sets them).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace eider::jinja {

enum class TokenKind : std::uint8_t {
  kData,
  kVariableBegin,
  kVariableEnd,
  kBlockBegin,
  kBlockEnd,
  kName,
  kString,
  kInteger,
  kFloat,
  kOperator,
  kEnd,
};

struct Token {
  TokenKind kind;
  std::string text;      ///< a string's value, a name, an operator, a number's digits without underscores
  std::uint32_t offset;  ///< byte of the source

  bool is_operator(std::string_view symbol) const { return kind == TokenKind::kOperator && text == symbol; }
  bool is_name(std::string_view name) const { return kind == TokenKind::kName && text == name; }
};

/// Line ends as \n, and the last one dropped: what tokenize() takes and offsets refer to.
std::string normalize_source(std::string_view source);

/// Ends with a kEnd token. Throws Failure with the offset.
std::vector<Token> tokenize(std::string_view source);

}  // namespace eider::jinja
