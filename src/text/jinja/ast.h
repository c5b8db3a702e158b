// The syntax tree of a template. Immutable once parsed, so that one template renders on many threads.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "text/jinja/value.h"

namespace eider::jinja {

struct Expression;
struct Statement;
using ExpressionPtr = std::unique_ptr<Expression>;  // null where the template leaves it out
using Body = std::vector<Statement>;

struct CallArguments {
  std::vector<ExpressionPtr> positional;
  std::vector<std::pair<std::string, ExpressionPtr>> named;
  ExpressionPtr spread;        ///< *list
  ExpressionPtr spread_named;  ///< **dict
};

struct Literal {
  Value value;
};
struct Name {
  std::string name;
};
struct ListLiteral {
  std::vector<ExpressionPtr> items;
  bool is_tuple = false;
};
struct DictLiteral {
  std::vector<std::pair<ExpressionPtr, ExpressionPtr>> entries;
};

enum class UnaryOperator : std::uint8_t { kNot, kNegate, kPlus };
struct Unary {
  UnaryOperator op;
  ExpressionPtr operand;
};

enum class BinaryOperator : std::uint8_t {
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,
  kFloorDivide,
  kModulo,
  kPower
};
struct Binary {
  BinaryOperator op;
  ExpressionPtr left, right;
};

/// `and`, `or`: the value of the operand that decides.
struct Logical {
  bool is_and;
  ExpressionPtr left, right;
};

enum class Comparison : std::uint8_t {
  kEqual,
  kNotEqual,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
  kIn,
  kNotIn
};
/// a < b <= c
struct Compare {
  ExpressionPtr first;
  std::vector<std::pair<Comparison, ExpressionPtr>> rest;
};

/// a ~ b ~ c
struct Concatenation {
  std::vector<ExpressionPtr> parts;
};
struct Conditional {
  ExpressionPtr test, then, otherwise;
};
/// `input` is null in a filter block and in a block set: what the block printed.
struct Filter {
  ExpressionPtr input;
  std::string name;
  CallArguments arguments;
};
struct Test {
  ExpressionPtr input;
  std::string name;
  CallArguments arguments;
  bool negated = false;
};
struct Call {
  ExpressionPtr callee;
  CallArguments arguments;
};
struct Attribute {
  ExpressionPtr object;
  std::string name;
};
struct Subscript {
  ExpressionPtr object, index;
};
struct Slice {
  ExpressionPtr object, start, stop, step;
};

struct Expression {
  std::uint32_t offset;
  int height = 1;  ///< of its tree, at most kMaxNesting: evaluation recurses that deep
  std::variant<Literal, Name, ListLiteral, DictLiteral, Unary, Binary, Logical, Compare, Concatenation,
               Conditional, Filter, Test, Call, Attribute, Subscript, Slice>
      node;
};

/// What set, for and with assign to: a name, an attribute of a namespace, or several targets to unpack into.
struct Target {
  std::string name;
  std::string attribute;         ///< not empty: name.attribute
  std::vector<Target> elements;  ///< not empty: unpack
};

struct Data {
  std::string text;
};
struct Print {
  ExpressionPtr value;
};
struct If {
  std::vector<std::pair<ExpressionPtr, Body>> branches;
  Body otherwise;
};
struct For {
  Target target;
  ExpressionPtr iterable, filter;
  Body body, otherwise;
  bool is_recursive = false;  ///< loop(items) runs it again
};
struct Set {
  Target target;
  ExpressionPtr value;
};
/// {% set x | filter %}...{% endset %}
struct SetBlock {
  Target target;
  ExpressionPtr filter;  ///< a chain of Filter over null, or null
  Body body;
};
struct FilterBlock {
  ExpressionPtr filter;
  Body body;
};
/// Names that a macro's body has without declaring them. A macro takes such arguments only if it uses them.
struct SpecialNames {
  bool varargs = false, kwargs = false, caller = false;
};
struct MacroDefinition {
  struct Parameter {
    std::string name;
    ExpressionPtr fallback;
  };
  std::string name;
  std::vector<Parameter> parameters;
  Body body;
  SpecialNames uses;
};
struct DefineMacro {
  std::unique_ptr<MacroDefinition> macro;
};
/// {% call(parameters) callee(arguments) %}: the body is a macro that the callee knows as `caller`.
struct CallBlock {
  std::unique_ptr<MacroDefinition> caller;
  ExpressionPtr call;
};
struct With {
  std::vector<std::pair<Target, ExpressionPtr>> assignments;
  Body body;
};
/// {% generation %}: marks what the assistant said, for training; renders as its body.
struct Scoped {
  Body body;
};
struct Break {};
struct Continue {};

struct Statement {
  std::uint32_t offset;
  std::variant<Data, Print, If, For, Set, SetBlock, FilterBlock, DefineMacro, CallBlock, With, Scoped, Break,
               Continue>
      node;
};

}  // namespace eider::jinja
