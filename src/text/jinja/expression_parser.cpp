#include "text/jinja/expression_parser.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

namespace eider::jinja {

namespace {

void grow(int& height, const ExpressionPtr& child) {
  if (child) height = std::max(height, child->height + 1);
}

void grow(int& height, const CallArguments& arguments) {
  for (const ExpressionPtr& value : arguments.positional) grow(height, value);
  for (const auto& [name, value] : arguments.named) grow(height, value);
  grow(height, arguments.spread);
  grow(height, arguments.spread_named);
}

struct Height {
  int operator()(const Literal&) const { return 1; }
  int operator()(const Name&) const { return 1; }
  int operator()(const ListLiteral& node) const { return of_all(node.items); }
  int operator()(const Concatenation& node) const { return of_all(node.parts); }
  int operator()(const Unary& node) const { return of(node.operand); }
  int operator()(const Binary& node) const { return of(node.left, node.right); }
  int operator()(const Logical& node) const { return of(node.left, node.right); }
  int operator()(const Conditional& node) const { return of(node.test, node.then, node.otherwise); }
  int operator()(const Attribute& node) const { return of(node.object); }
  int operator()(const Subscript& node) const { return of(node.object, node.index); }
  int operator()(const Slice& node) const { return of(node.object, node.start, node.stop, node.step); }
  int operator()(const Filter& node) const { return of(node.input, node.arguments); }
  int operator()(const Test& node) const { return of(node.input, node.arguments); }
  int operator()(const Call& node) const { return of(node.callee, node.arguments); }
  int operator()(const DictLiteral& node) const {
    int height = 1;
    for (const auto& [key, value] : node.entries) grow(height, key), grow(height, value);
    return height;
  }
  int operator()(const Compare& node) const {
    int height = of(node.first);
    for (const auto& [op, operand] : node.rest) grow(height, operand);
    return height;
  }

 private:
  template <class... Children>
  static int of(const Children&... children) {
    int height = 1;
    (grow(height, children), ...);
    return height;
  }
  static int of_all(const std::vector<ExpressionPtr>& children) {
    int height = 1;
    for (const ExpressionPtr& child : children) grow(height, child);
    return height;
  }
};

class Nesting {
 public:
  Nesting(int& depth, const TokenStream& tokens) : depth_(depth) {
    if (depth == kMaxNesting) tokens.fail(fmt::format("the template nests more than {} deep", kMaxNesting));
    ++depth_;
  }
  ~Nesting() { --depth_; }
  Nesting(const Nesting&) = delete;
  Nesting& operator=(const Nesting&) = delete;

 private:
  int& depth_;
};

template <class Operator, std::size_t n>
std::optional<Operator> take_any(TokenStream& tokens,
                                 const std::array<std::pair<std::string_view, Operator>, n>& table) {
  for (const auto& [symbol, op] : table) {
    if (tokens.take_operator(symbol)) return op;
  }
  return std::nullopt;
}

std::optional<Comparison> take_comparison(TokenStream& tokens) {
  constexpr std::array<std::pair<std::string_view, Comparison>, 6> kTable = {
      {{"==", Comparison::kEqual},
       {"!=", Comparison::kNotEqual},
       {"<", Comparison::kLess},
       {"<=", Comparison::kLessEqual},
       {">", Comparison::kGreater},
       {">=", Comparison::kGreaterEqual}}};
  if (const auto op = take_any(tokens, kTable)) return op;
  if (tokens.take_name("in")) return Comparison::kIn;
  if (tokens.at_name("not") && tokens.ahead().is_name("in")) {
    tokens.next();
    tokens.next();
    return Comparison::kNotIn;
  }
  return std::nullopt;
}

}  // namespace

ExpressionPtr ExpressionParser::make(std::uint32_t offset, decltype(Expression::node) node) const {
  const int height = std::visit(Height{}, node);
  if (height > kMaxNesting)
    throw Failure(fmt::format("the template nests more than {} deep", kMaxNesting), offset);
  return std::make_unique<Expression>(Expression{offset, height, std::move(node)});
}

ExpressionPtr ExpressionParser::parse_expression() {
  const Nesting nesting(nesting_, tokens_);
  return parse_conditional();
}

ExpressionPtr ExpressionParser::parse_conditional() {
  ExpressionPtr value = parse_or();
  while (tokens_.at_name("if")) {
    const std::uint32_t offset = tokens_.next().offset;
    ExpressionPtr test = parse_or();
    ExpressionPtr otherwise;
    if (tokens_.take_name("else")) {
      const Nesting nesting(nesting_, tokens_);
      otherwise = parse_conditional();
    }
    value = make(offset, Conditional{std::move(test), std::move(value), std::move(otherwise)});
  }
  return value;
}

ExpressionPtr ExpressionParser::parse_or() {
  ExpressionPtr left = parse_and();
  while (tokens_.at_name("or")) {
    const std::uint32_t offset = tokens_.next().offset;
    left = make(offset, Logical{false, std::move(left), parse_and()});
  }
  return left;
}

ExpressionPtr ExpressionParser::parse_and() {
  ExpressionPtr left = parse_not();
  while (tokens_.at_name("and")) {
    const std::uint32_t offset = tokens_.next().offset;
    left = make(offset, Logical{true, std::move(left), parse_not()});
  }
  return left;
}

ExpressionPtr ExpressionParser::parse_not() {
  if (!tokens_.at_name("not")) return parse_compare();
  const Nesting nesting(nesting_, tokens_);
  const std::uint32_t offset = tokens_.next().offset;
  return make(offset, Unary{UnaryOperator::kNot, parse_not()});
}

ExpressionPtr ExpressionParser::parse_compare() {
  const std::uint32_t offset = tokens_.offset();
  Compare compare{parse_sum(), {}};
  while (const auto op = take_comparison(tokens_)) compare.rest.emplace_back(*op, parse_sum());
  return compare.rest.empty() ? std::move(compare.first) : make(offset, std::move(compare));
}

ExpressionPtr ExpressionParser::parse_sum() {
  constexpr std::array<std::pair<std::string_view, BinaryOperator>, 2> kTable = {
      {{"+", BinaryOperator::kAdd}, {"-", BinaryOperator::kSubtract}}};
  ExpressionPtr left = parse_concatenation();
  for (std::uint32_t offset = tokens_.offset(); const auto op = take_any(tokens_, kTable);
       offset = tokens_.offset()) {
    left = make(offset, Binary{*op, std::move(left), parse_concatenation()});
  }
  return left;
}

ExpressionPtr ExpressionParser::parse_concatenation() {
  const std::uint32_t offset = tokens_.offset();
  Concatenation concatenation;
  concatenation.parts.push_back(parse_product());
  while (tokens_.take_operator("~")) concatenation.parts.push_back(parse_product());
  if (concatenation.parts.size() == 1) return std::move(concatenation.parts.front());
  return make(offset, std::move(concatenation));
}

ExpressionPtr ExpressionParser::parse_product() {
  constexpr std::array<std::pair<std::string_view, BinaryOperator>, 4> kTable = {
      {{"*", BinaryOperator::kMultiply},
       {"/", BinaryOperator::kDivide},
       {"//", BinaryOperator::kFloorDivide},
       {"%", BinaryOperator::kModulo}}};
  ExpressionPtr left = parse_power();
  for (std::uint32_t offset = tokens_.offset(); const auto op = take_any(tokens_, kTable);
       offset = tokens_.offset()) {
    left = make(offset, Binary{*op, std::move(left), parse_power()});
  }
  return left;
}

ExpressionPtr ExpressionParser::parse_power() {
  ExpressionPtr left = parse_unary(true);
  while (tokens_.at_operator("**")) {
    const std::uint32_t offset = tokens_.next().offset;
    left = make(offset, Binary{BinaryOperator::kPower, std::move(left), parse_unary(true)});
  }
  return left;
}

ExpressionPtr ExpressionParser::parse_unary(bool with_filter) {
  const std::uint32_t offset = tokens_.offset();
  ExpressionPtr value;
  if (tokens_.at_operator("-") || tokens_.at_operator("+")) {
    const Nesting nesting(nesting_, tokens_);
    const bool negate = tokens_.next().text == "-";
    value = make(offset, Unary{negate ? UnaryOperator::kNegate : UnaryOperator::kPlus, parse_unary(false)});
  } else {
    value = parse_primary();
  }
  value = parse_postfix(std::move(value));
  return with_filter ? parse_filters_and_tests(std::move(value)) : std::move(value);
}

ExpressionPtr ExpressionParser::parse_primary() {
  const std::uint32_t offset = tokens_.offset();
  switch (tokens_.current().kind) {
    case TokenKind::kName:
      return parse_name_or_constant();
    case TokenKind::kString: {
      std::string text;
      while (tokens_.current().kind == TokenKind::kString) text += tokens_.next().text;
      return make(offset, Literal{std::move(text)});
    }
    case TokenKind::kInteger:
    case TokenKind::kFloat:
      return parse_number();
    default:
      break;
  }
  if (tokens_.at_operator("(")) return parse_parenthesis();
  if (tokens_.at_operator("[")) return parse_list();
  if (tokens_.at_operator("{")) return parse_dict();
  tokens_.fail(fmt::format("expected an expression, found {}", tokens_.found()));
}

ExpressionPtr ExpressionParser::parse_name_or_constant() {
  const Token token = tokens_.next();
  if (token.text == "true" || token.text == "True") return make(token.offset, Literal{true});
  if (token.text == "false" || token.text == "False") return make(token.offset, Literal{false});
  if (token.text == "none" || token.text == "None") return make(token.offset, Literal{None{}});
  special_names_.varargs |= token.text == "varargs";
  special_names_.kwargs |= token.text == "kwargs";
  special_names_.caller |= token.text == "caller";
  return make(token.offset, Name{token.text});
}

ExpressionPtr ExpressionParser::parse_number() {
  const Token token = tokens_.next();
  std::string_view digits = token.text;
  if (token.kind == TokenKind::kFloat) {
    double value = 0;
    const auto [stop, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (problem != std::errc())
      throw Failure(fmt::format("the number {} is out of range", digits), token.offset);
    return make(token.offset, Literal{value});
  }
  int base = 10;
  if (digits.size() > 1 && digits[0] == '0' && digits[1] > '9') {
    base = (digits[1] | 0x20) == 'x' ? 16 : (digits[1] | 0x20) == 'o' ? 8 : 2;
    digits.remove_prefix(2);
  }
  std::int64_t value = 0;
  const auto [stop, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
  if (problem != std::errc() || stop != digits.data() + digits.size()) {
    throw Failure(fmt::format("the number {} is not a 64-bit integer", token.text), token.offset);
  }
  return make(token.offset, Literal{value});
}

ExpressionPtr ExpressionParser::parse_parenthesis() {
  const std::uint32_t offset = tokens_.next().offset;
  if (tokens_.take_operator(")")) return make(offset, ListLiteral{{}, true});
  ExpressionPtr value = parse_tuple();
  tokens_.expect_operator(")");
  return value;
}

ExpressionPtr ExpressionParser::parse_list() {
  const std::uint32_t offset = tokens_.next().offset;
  ListLiteral list;
  while (!tokens_.at_operator("]")) {
    list.items.push_back(parse_expression());
    if (!tokens_.take_operator(",")) break;
  }
  tokens_.expect_operator("]");
  return make(offset, std::move(list));
}

ExpressionPtr ExpressionParser::parse_dict() {
  const std::uint32_t offset = tokens_.next().offset;
  DictLiteral dict;
  while (!tokens_.at_operator("}")) {
    ExpressionPtr key = parse_expression();
    tokens_.expect_operator(":");
    dict.entries.emplace_back(std::move(key), parse_expression());
    if (!tokens_.take_operator(",")) break;
  }
  tokens_.expect_operator("}");
  return make(offset, std::move(dict));
}

bool ExpressionParser::at_tuple_end() const {
  const TokenKind kind = tokens_.current().kind;
  return kind == TokenKind::kVariableEnd || kind == TokenKind::kBlockEnd || tokens_.at_operator(")") ||
         tokens_.at_operator("]") || tokens_.at_operator("=");
}

ExpressionPtr ExpressionParser::parse_tuple(bool allow_conditional) {
  const Nesting nesting(nesting_, tokens_);
  const std::uint32_t offset = tokens_.offset();
  ListLiteral tuple{{}, true};
  do {
    tuple.items.push_back(allow_conditional ? parse_conditional() : parse_or());
    if (!tokens_.take_operator(",")) {
      if (tuple.items.size() == 1) return std::move(tuple.items.front());
      break;
    }
  } while (!at_tuple_end());
  return make(offset, std::move(tuple));
}

ExpressionPtr ExpressionParser::parse_postfix(ExpressionPtr object) {
  while (true) {
    const std::uint32_t offset = tokens_.offset();
    if (tokens_.at_operator(".")) {
      object = parse_attribute(std::move(object));
    } else if (tokens_.at_operator("[")) {
      object = parse_subscript(std::move(object));
    } else if (tokens_.at_operator("(")) {
      object = make(offset, Call{std::move(object), parse_arguments()});
    } else {
      return object;
    }
  }
}

ExpressionPtr ExpressionParser::parse_attribute(ExpressionPtr object) {
  const std::uint32_t offset = tokens_.next().offset;
  if (tokens_.current().kind == TokenKind::kInteger) {
    return make(offset, Subscript{std::move(object), parse_number()});
  }
  return make(offset, Attribute{std::move(object), tokens_.expect_identifier()});
}

ExpressionPtr ExpressionParser::parse_subscript(ExpressionPtr object) {
  const std::uint32_t offset = tokens_.next().offset;
  const auto at_bound = [&] { return !tokens_.at_operator(":") && !tokens_.at_operator("]"); };
  ExpressionPtr start;
  if (at_bound()) start = parse_tuple();
  if (!tokens_.at_operator(":")) {
    if (!start) tokens_.fail("expected an index");
    tokens_.expect_operator("]");
    return make(offset, Subscript{std::move(object), std::move(start)});
  }
  Slice slice{std::move(object), std::move(start), nullptr, nullptr};
  tokens_.expect_operator(":");
  if (at_bound()) slice.stop = parse_expression();
  if (tokens_.take_operator(":") && at_bound()) slice.step = parse_expression();
  tokens_.expect_operator("]");
  return make(offset, std::move(slice));
}

CallArguments ExpressionParser::parse_arguments() {
  tokens_.expect_operator("(");
  CallArguments arguments;
  while (!tokens_.at_operator(")")) {
    if (tokens_.take_operator("*")) {
      arguments.spread = parse_expression();
    } else if (tokens_.take_operator("**")) {
      arguments.spread_named = parse_expression();
    } else if (tokens_.current().kind == TokenKind::kName && tokens_.ahead().is_operator("=")) {
      std::string name = tokens_.next().text;
      tokens_.next();
      arguments.named.emplace_back(std::move(name), parse_expression());
    } else {
      if (!arguments.named.empty() || arguments.spread)
        tokens_.fail("a positional argument after a named one");
      arguments.positional.push_back(parse_expression());
    }
    if (!tokens_.take_operator(",")) break;
  }
  tokens_.expect_operator(")");
  return arguments;
}

ExpressionPtr ExpressionParser::parse_filters_and_tests(ExpressionPtr input) {
  while (true) {
    const std::uint32_t offset = tokens_.offset();
    if (tokens_.at_operator("|")) {
      input = parse_filter_chain(std::move(input), true);
    } else if (tokens_.at_name("is")) {
      input = parse_test(std::move(input));
    } else if (tokens_.at_operator("(")) {
      input = make(offset, Call{std::move(input), parse_arguments()});
    } else {
      return input;
    }
  }
}

ExpressionPtr ExpressionParser::parse_filter_chain(ExpressionPtr input, bool first_bar_is_written) {
  for (bool bar = first_bar_is_written; !bar || tokens_.at_operator("|"); bar = true) {
    if (bar) tokens_.expect_operator("|");
    const std::uint32_t offset = tokens_.offset();
    Filter filter{std::move(input), tokens_.expect_identifier(), {}};
    if (tokens_.at_operator("(")) filter.arguments = parse_arguments();
    input = make(offset, std::move(filter));
  }
  return input;
}

bool ExpressionParser::at_test_argument() const {
  switch (tokens_.current().kind) {
    case TokenKind::kString:
    case TokenKind::kInteger:
    case TokenKind::kFloat:
      return true;
    case TokenKind::kName:
      return !tokens_.at_any_name({"else", "or", "and", "is", "if", "in", "not"});
    default:
      return tokens_.at_operator("[") || tokens_.at_operator("{");
  }
}

ExpressionPtr ExpressionParser::parse_test(ExpressionPtr input) {
  const std::uint32_t offset = tokens_.next().offset;
  Test test{std::move(input), {}, {}, tokens_.take_name("not")};
  test.name = tokens_.expect_identifier();
  if (tokens_.at_operator("(")) {
    test.arguments = parse_arguments();
  } else if (at_test_argument()) {
    test.arguments.positional.push_back(parse_postfix(parse_primary()));
  }
  return make(offset, std::move(test));
}

}  // namespace eider::jinja
