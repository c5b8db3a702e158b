// ExpressionParser: the expression half of the grammar. Each function parses one level of precedence; the
// name of the level is Jinja2's.
#pragma once

#include <initializer_list>
#include <string_view>
#include <vector>

#include "text/jinja/ast.h"
#include "text/jinja/token_stream.h"

namespace eider::jinja {

class ExpressionParser {
 public:
  explicit ExpressionParser(TokenStream& tokens) : tokens_(tokens) {}

  /// With `a if b else c`, without a bare tuple.
  ExpressionPtr parse_expression();
  /// a, b, c without brackets is a tuple. `allow_conditional`: whether `if` continues an element (not in a
  /// for's head).
  ExpressionPtr parse_tuple(bool allow_conditional = true);
  /// `| name(arguments) | ...` over `input`; null stands for what a block prints. The first bar may be left
  /// out.
  ExpressionPtr parse_filter_chain(ExpressionPtr input, bool first_bar_is_written);
  /// `(...)` after a callee.
  CallArguments parse_arguments();

  /// Which of them were met since they were last reset.
  SpecialNames& special_names() { return special_names_; }

  ExpressionPtr make(std::uint32_t offset, decltype(Expression::node) node) const;

 private:
  ExpressionPtr parse_conditional();
  ExpressionPtr parse_or();
  ExpressionPtr parse_and();
  ExpressionPtr parse_not();
  ExpressionPtr parse_compare();
  ExpressionPtr parse_sum();
  ExpressionPtr parse_concatenation();
  ExpressionPtr parse_product();
  ExpressionPtr parse_power();
  ExpressionPtr parse_unary(bool with_filter);
  ExpressionPtr parse_primary();
  ExpressionPtr parse_name_or_constant();
  ExpressionPtr parse_number();
  ExpressionPtr parse_parenthesis();
  ExpressionPtr parse_list();
  ExpressionPtr parse_dict();
  ExpressionPtr parse_postfix(ExpressionPtr object);
  ExpressionPtr parse_filters_and_tests(ExpressionPtr input);
  ExpressionPtr parse_test(ExpressionPtr input);
  ExpressionPtr parse_attribute(ExpressionPtr object);
  ExpressionPtr parse_subscript(ExpressionPtr object);
  bool at_test_argument() const;
  bool at_tuple_end() const;

  TokenStream& tokens_;
  SpecialNames special_names_;
  int nesting_ = 0;  // of brackets, `not` and signs: what this parser recurses into
};

}  // namespace eider::jinja
