// The tests of `is`.
#include <algorithm>
#include <array>
#include <utility>

#include "text/jinja/interpreter.h"
#include "text/jinja/operators.h"
#include "text/jinja/python_text.h"

namespace eider::jinja {

namespace {

bool is_defined(Interpreter&, const Value& self, const Arguments&) {
  return !self.is_undefined();
}
bool is_undefined(Interpreter&, const Value& self, const Arguments&) {
  return self.is_undefined();
}
bool is_none(Interpreter&, const Value& self, const Arguments&) {
  return self.is_none();
}
bool is_boolean(Interpreter&, const Value& self, const Arguments&) {
  return self.boolean() != nullptr;
}
bool is_literal_true(Interpreter&, const Value& self, const Arguments&) {
  return self.boolean() != nullptr && *self.boolean();
}
bool is_literal_false(Interpreter&, const Value& self, const Arguments&) {
  return self.boolean() != nullptr && !*self.boolean();
}
bool is_integer(Interpreter&, const Value& self, const Arguments&) {
  return self.integer() != nullptr;
}
bool is_float(Interpreter&, const Value& self, const Arguments&) {
  return self.floating() != nullptr;
}
bool is_number(Interpreter&, const Value& self, const Arguments&) {
  return self.integer() != nullptr || self.floating() != nullptr || self.boolean() != nullptr;
}
bool is_string(Interpreter&, const Value& self, const Arguments&) {
  return self.string() != nullptr;
}
bool is_mapping(Interpreter&, const Value& self, const Arguments&) {
  return self.dict() != nullptr;
}
bool is_callable(Interpreter&, const Value& self, const Arguments&) {
  return self.callable() != nullptr;
}

bool is_iterable(Interpreter&, const Value& self, const Arguments&) {
  return self.string() != nullptr || self.sequence() != nullptr || self.dict() != nullptr ||
         self.loop() != nullptr || self.is_undefined();
}

// What has a length and items by index; a generator has neither.
bool is_sequence(Interpreter&, const Value& self, const Arguments&) {
  if (const Sequence* sequence = self.sequence()) return sequence->kind != Sequence::Kind::kGenerator;
  return self.string() != nullptr || self.dict() != nullptr || self.is_undefined();
}

// self % divisor == remainder, of any numbers.
bool leaves(Interpreter& interpreter, const Value& self, const Value& divisor, std::int64_t remainder) {
  return equals(apply(BinaryOperator::kModulo, self, divisor, interpreter.budget()), remainder,
                interpreter.budget());
}

bool is_even(Interpreter& interpreter, const Value& self, const Arguments&) {
  return leaves(interpreter, self, std::int64_t{2}, 0);
}
bool is_odd(Interpreter& interpreter, const Value& self, const Arguments&) {
  return leaves(interpreter, self, std::int64_t{2}, 1);
}
bool is_divisible_by(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  return leaves(interpreter, self, arguments.require(0, "num"), 0);
}

template <Comparison op>
bool compares(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  return compare(op, self, arguments.require(0, "other"), interpreter.budget());
}

// `is` of Python: the same object.
bool is_same_as(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  const Value& other = arguments.require(0, "other");
  return self.data().index() == other.data().index() && equals(self, other, interpreter.budget());
}

template <std::string (*map)(std::string_view)>
bool is_in_case(Interpreter& interpreter, const Value& self, const Arguments&) {
  const std::string text = to_text(self, interpreter.budget());
  return map(text) == text && to_lower(text) != to_upper(text);
}

bool is_filter(Interpreter&, const Value& self, const Arguments&) {
  return self.string() != nullptr && find_filter(*self.string()) != nullptr;
}

bool is_test(Interpreter&, const Value& self, const Arguments&) {
  return self.string() != nullptr && find_test(*self.string()) != nullptr;
}

bool is_escaped(Interpreter&, const Value&, const Arguments&) {
  return false;
}

constexpr std::pair<std::string_view, BuiltinTest> kTests[] = {
    {"defined", is_defined},
    {"undefined", is_undefined},
    {"none", is_none},
    {"boolean", is_boolean},
    {"true", is_literal_true},
    {"false", is_literal_false},
    {"integer", is_integer},
    {"float", is_float},
    {"number", is_number},
    {"string", is_string},
    {"mapping", is_mapping},
    {"callable", is_callable},
    {"iterable", is_iterable},
    {"sequence", is_sequence},
    {"even", is_even},
    {"odd", is_odd},
    {"divisibleby", is_divisible_by},
    {"eq", compares<Comparison::kEqual>},
    {"equalto", compares<Comparison::kEqual>},
    {"==", compares<Comparison::kEqual>},
    {"ne", compares<Comparison::kNotEqual>},
    {"!=", compares<Comparison::kNotEqual>},
    {"lt", compares<Comparison::kLess>},
    {"lessthan", compares<Comparison::kLess>},
    {"<", compares<Comparison::kLess>},
    {"le", compares<Comparison::kLessEqual>},
    {"<=", compares<Comparison::kLessEqual>},
    {"gt", compares<Comparison::kGreater>},
    {"greaterthan", compares<Comparison::kGreater>},
    {">", compares<Comparison::kGreater>},
    {"ge", compares<Comparison::kGreaterEqual>},
    {">=", compares<Comparison::kGreaterEqual>},
    {"in", compares<Comparison::kIn>},
    {"sameas", is_same_as},
    {"lower", is_in_case<to_lower>},
    {"upper", is_in_case<to_upper>},
    {"filter", is_filter},
    {"test", is_test},
    {"escaped", is_escaped},
};

}  // namespace

BuiltinTest find_test(std::string_view name) {
  const auto* found = std::ranges::find(kTests, name, &std::pair<std::string_view, BuiltinTest>::first);
  return found == std::end(kTests) ? nullptr : found->second;
}

}  // namespace eider::jinja
