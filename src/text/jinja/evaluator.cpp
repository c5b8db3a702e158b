// The expression half of Interpreter.
#include <algorithm>

#include "text/jinja/interpreter.h"
#include "text/jinja/operators.h"
#include "text/jinja/python_text.h"

namespace eider::jinja {

Value Interpreter::evaluate(const Expression& expression) {
  return enter(expression, [this](const auto& node) { return compute(node); });
}

Value Interpreter::compute(const Literal& node) {
  return node.value;
}

Value Interpreter::compute(const Name& node) {
  if (const Value* variable = find_variable(node.name)) return *variable;
  if (const Builtin function = find_function(node.name)) return Callable{Method{{}, function}, node.name};
  return Value::undefined(fmt::format("'{}' is undefined", node.name));
}

Value Interpreter::compute(const ListLiteral& node) {
  std::vector<Value> items;
  budget_.allocate(node.items.size() * sizeof(Value));
  for (const ExpressionPtr& item : node.items) items.push_back(evaluate(item));
  return node.is_tuple ? make_tuple(std::move(items)) : make_list(std::move(items));
}

Value Interpreter::compute(const DictLiteral& node) {
  std::vector<Dict::Entry> entries;
  budget_.allocate(node.entries.size() * sizeof(Dict::Entry));
  budget_.spend(node.entries.size() * node.entries.size() / 8);
  for (const auto& [key, value] : node.entries) {
    Value evaluated_key = evaluate(key);
    entries.emplace_back(std::move(evaluated_key), evaluate(value));
  }
  return Dict(std::move(entries));
}

Value Interpreter::compute(const Unary& node) {
  return apply(node.op, evaluate(node.operand));
}

Value Interpreter::compute(const Binary& node) {
  const Value left = evaluate(node.left);
  const Value right = evaluate(node.right);
  return apply(node.op, left, right, budget_);
}

Value Interpreter::compute(const Logical& node) {
  Value left = evaluate(node.left);
  return is_true(left) == node.is_and ? evaluate(node.right) : left;
}

Value Interpreter::compute(const Compare& node) {
  Value left = evaluate(node.first);
  for (const auto& [op, operand] : node.rest) {
    Value right = evaluate(operand);
    if (!compare(op, left, right, budget_)) return false;
    left = std::move(right);
  }
  return true;
}

Value Interpreter::compute(const Concatenation& node) {
  std::string text;
  for (const ExpressionPtr& part : node.parts) {
    const std::string printed = to_text(evaluate(part), budget_);
    budget_.grow_string(text.size(), printed.size());
    text += printed;
  }
  return text;
}

Value Interpreter::compute(const Conditional& node) {
  if (is_true(evaluate(node.test))) return evaluate(node.then);
  if (node.otherwise) return evaluate(node.otherwise);
  return Value::undefined("the inline if-expression was false and has no else");
}

Arguments Interpreter::evaluate(const CallArguments& arguments) {
  Arguments result;
  for (const ExpressionPtr& value : arguments.positional) result.positional.push_back(evaluate(value));
  for (const auto& [name, value] : arguments.named) result.named.emplace_back(name, evaluate(value));
  if (arguments.spread) {
    const auto items = iterate(evaluate(arguments.spread));
    budget_.allocate(items->items.size() * sizeof(Value));
    result.positional.insert(result.positional.end(), items->items.begin(), items->items.end());
  }
  if (arguments.spread_named) {
    const Value spread = evaluate(arguments.spread_named);
    if (spread.dict() == nullptr) throw Failure("argument after ** must be a mapping");
    for (const auto& [key, value] : spread.dict()->entries) {
      if (key.string() == nullptr) throw Failure("keywords must be strings");
      result.named.emplace_back(*key.string(), value);
    }
  }
  return result;
}

Value Interpreter::compute(const Filter& node) {
  const Value input = node.input ? evaluate(node.input) : block_output_;
  const Arguments arguments = evaluate(node.arguments);
  const Builtin filter = find_filter(node.name);
  if (filter == nullptr) throw failure("No filter named '{}'.", node.name);
  return filter(*this, input, arguments);
}

Value Interpreter::compute(const Test& node) {
  const Value input = evaluate(node.input);
  const Arguments arguments = evaluate(node.arguments);
  const BuiltinTest test = find_test(node.name);
  if (test == nullptr) throw failure("No test named '{}'.", node.name);
  return test(*this, input, arguments) != node.negated;
}

Value Interpreter::compute(const Call& node) {
  const Value callee = evaluate(node.callee);
  const Arguments arguments = evaluate(node.arguments);
  return call(callee, arguments);
}

Value Interpreter::compute(const Attribute& node) {
  return get_attribute(evaluate(node.object), node.name);
}

Value Interpreter::compute(const Subscript& node) {
  const Value object = evaluate(node.object);
  return get_item(object, evaluate(node.index));
}

Value Interpreter::compute(const Slice& node) {
  const auto bound = [this](const ExpressionPtr& expression) {
    return expression ? evaluate(expression) : Value();
  };
  const Value object = evaluate(node.object);
  const Value start = bound(node.start);
  const Value stop = bound(node.stop);
  return slice(object, start, stop, bound(node.step), budget_);
}

}  // namespace eider::jinja
