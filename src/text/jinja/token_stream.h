// TokenStream: the parser's place in the tokens.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/jinja/failure.h"
#include "text/jinja/lexer.h"

namespace eider::jinja {

class TokenStream {
 public:
  explicit TokenStream(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  const Token& current() const { return tokens_[position_]; }
  const Token& ahead() const { return tokens_[std::min(position_ + 1, tokens_.size() - 1)]; }
  std::uint32_t offset() const { return current().offset; }

  Token next() {
    Token token = current();
    if (token.kind != TokenKind::kEnd) ++position_;
    return token;
  }

  bool at_operator(std::string_view symbol) const { return current().is_operator(symbol); }
  bool at_name(std::string_view name) const { return current().is_name(name); }
  bool at_any_name(std::initializer_list<std::string_view> names) const {
    return std::ranges::any_of(names, [&](std::string_view name) { return at_name(name); });
  }

  bool take_operator(std::string_view symbol) { return at_operator(symbol) && advance(); }
  bool take_name(std::string_view name) { return at_name(name) && advance(); }

  void expect_operator(std::string_view symbol) {
    if (!take_operator(symbol)) fail(fmt::format("expected '{}', found {}", symbol, found()));
  }
  void expect_name(std::string_view name) {
    if (!take_name(name)) fail(fmt::format("expected '{}', found {}", name, found()));
  }
  void expect(TokenKind kind, std::string_view what) {
    if (current().kind != kind) fail(fmt::format("expected {}, found {}", what, found()));
    next();
  }
  std::string expect_identifier() {
    if (current().kind != TokenKind::kName) fail(fmt::format("expected a name, found {}", found()));
    return next().text;
  }

  /// For messages: what stands here.
  std::string found() const;
  [[noreturn]] void fail(std::string cause) const { throw Failure(std::move(cause), offset()); }

 private:
  bool advance() {
    next();
    return true;
  }

  std::vector<Token> tokens_;
  std::size_t position_ = 0;
};

}  // namespace eider::jinja
