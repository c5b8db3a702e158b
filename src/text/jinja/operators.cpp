#include "text/jinja/operators.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>

#include "text/jinja/format_spec.h"
#include "text/jinja/python_text.h"

namespace eider::jinja {

namespace {

constexpr std::array<std::string_view, 7> kSymbols = {"+", "-", "*", "/", "//", "%", "** or pow()"};

[[noreturn]] void fail_operands(BinaryOperator op, const Value& left, const Value& right) {
  if (op == BinaryOperator::kAdd && (left.string() != nullptr || left.sequence() != nullptr)) {
    const std::string_view type = type_name(left);
    throw failure("can only concatenate {} (not \"{}\") to {}", type, type_name(right), type);
  }
  throw failure("unsupported operand type(s) for {}: '{}' and '{}'", kSymbols[static_cast<std::size_t>(op)],
                type_name(left), type_name(right));
}

std::optional<std::int64_t> as_integer(const Value& value) {
  if (const auto* integer = value.integer()) return *integer;
  if (const bool* boolean = value.boolean()) return *boolean ? 1 : 0;
  return std::nullopt;
}

std::optional<double> as_floating(const Value& value) {
  if (const double* floating = value.floating()) return *floating;
  if (const auto integer = as_integer(value)) return static_cast<double>(*integer);
  return std::nullopt;
}

// A 64-bit result, or what Python's unbounded integers would not need.
template <class Operation>
std::int64_t checked(Operation overflows) {
  std::int64_t result = 0;
  if (overflows(result)) throw Failure("an integer leaves 64 bits");
  return result;
}

std::int64_t add(std::int64_t a, std::int64_t b) {
  return checked([&](std::int64_t& result) { return __builtin_add_overflow(a, b, &result); });
}

std::int64_t subtract(std::int64_t a, std::int64_t b) {
  return checked([&](std::int64_t& result) { return __builtin_sub_overflow(a, b, &result); });
}

std::int64_t multiply(std::int64_t a, std::int64_t b) {
  return checked([&](std::int64_t& result) { return __builtin_mul_overflow(a, b, &result); });
}

std::int64_t floor_divide(std::int64_t a, std::int64_t b) {
  if (b == 0) throw Failure("integer division or modulo by zero");
  if (b == -1) return subtract(0, a);
  const std::int64_t quotient = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

std::int64_t power(std::int64_t base, std::int64_t exponent) {
  std::int64_t result = 1;
  for (; exponent > 0; exponent >>= 1) {
    if ((exponent & 1) != 0) result = multiply(result, base);
    if (exponent > 1) base = multiply(base, base);
  }
  return result;
}

Value apply_integers(BinaryOperator op, std::int64_t a, std::int64_t b) {
  switch (op) {
    case BinaryOperator::kAdd:
      return add(a, b);
    case BinaryOperator::kSubtract:
      return subtract(a, b);
    case BinaryOperator::kMultiply:
      return multiply(a, b);
    case BinaryOperator::kDivide:
      if (b == 0) throw Failure("division by zero");
      return static_cast<double>(a) / static_cast<double>(b);
    case BinaryOperator::kFloorDivide:
      return floor_divide(a, b);
    case BinaryOperator::kModulo:
      return b == -1 ? std::int64_t{0} : a - floor_divide(a, b) * b;
    case BinaryOperator::kPower:
      break;
  }
  if (b < 0) return std::pow(static_cast<double>(a), static_cast<double>(b));
  return power(a, b);
}

Value apply_floats(BinaryOperator op, double a, double b) {
  switch (op) {
    case BinaryOperator::kAdd:
      return a + b;
    case BinaryOperator::kSubtract:
      return a - b;
    case BinaryOperator::kMultiply:
      return a * b;
    case BinaryOperator::kPower:
      return std::pow(a, b);
    default:
      break;
  }
  if (b == 0) throw Failure("float division by zero");
  if (op == BinaryOperator::kDivide) return a / b;
  if (op == BinaryOperator::kFloorDivide) return std::floor(a / b);
  const double remainder = std::fmod(a, b);
  return remainder != 0 && (remainder < 0) != (b < 0) ? remainder + b : remainder;
}

Value repeat(const Value& value, std::int64_t count, Budget& budget) {
  const auto times = static_cast<std::size_t>(std::max<std::int64_t>(count, 0));
  if (const std::string* text = value.string()) {
    if (text->empty()) return "";
    if (times > (std::size_t{1} << 40)) throw Failure("a repeated string is too long");
    budget.make_string(text->size() * times);
    std::string result;
    for (std::size_t i = 0; i < times; ++i) result += *text;
    return result;
  }
  const Sequence& sequence = *value.sequence();
  if (sequence.items.empty()) return value;
  if (times > (std::size_t{1} << 32)) throw Failure("a repeated list is too long");
  budget.allocate(sequence.items.size() * times * sizeof(Value));
  std::vector<Value> items;
  for (std::size_t i = 0; i < times; ++i)
    items.insert(items.end(), sequence.items.begin(), sequence.items.end());
  return Sequence(sequence.kind, std::move(items));
}

Value add(const Value& left, const Value& right, Budget& budget) {
  if (left.string() != nullptr && right.string() != nullptr) {
    budget.make_string(left.string()->size() + right.string()->size());
    return *left.string() + *right.string();
  }
  const Sequence* a = left.sequence();
  const Sequence* b = right.sequence();
  if (a == nullptr || b == nullptr || a->kind != b->kind || a->kind == Sequence::Kind::kGenerator) {
    fail_operands(BinaryOperator::kAdd, left, right);
  }
  budget.allocate((a->items.size() + b->items.size()) * sizeof(Value));
  std::vector<Value> items = a->items;
  items.insert(items.end(), b->items.begin(), b->items.end());
  return Sequence(a->kind, std::move(items));
}

bool is_repeatable(const Value& value) {
  const Sequence* sequence = value.sequence();
  return value.string() != nullptr || (sequence != nullptr && sequence->kind != Sequence::Kind::kGenerator);
}

std::optional<std::int64_t> slice_bound(const Value& value) {
  if (value.is_undefined() || value.is_none()) return std::nullopt;
  if (const auto integer = as_integer(value)) return integer;
  throw Failure("slice indices must be integers or None");
}

// Python's slice.indices(): the positions of object[start:stop:step].
std::vector<std::size_t> slice_indices(std::int64_t size, const Value& start, const Value& stop,
                                       const Value& step, Budget& budget) {
  const std::int64_t stride = slice_bound(step).value_or(1);
  if (stride == 0) throw Failure("slice step cannot be zero");
  const std::int64_t lowest = stride > 0 ? 0 : -1;
  const std::int64_t highest = stride > 0 ? size : size - 1;
  const auto clamp = [&](std::optional<std::int64_t> bound, std::int64_t open) {
    if (!bound) return open;
    return std::clamp(*bound < 0 ? *bound + size : *bound, lowest, highest);
  };
  const std::int64_t begin = clamp(slice_bound(start), stride > 0 ? lowest : highest);
  const std::int64_t end = clamp(slice_bound(stop), stride > 0 ? highest : lowest);
  std::vector<std::size_t> indices;
  budget.spend(static_cast<std::uint64_t>(size) / 8);
  for (std::int64_t i = begin; stride > 0 ? i < end : i > end;) {
    indices.push_back(static_cast<std::size_t>(i));
    // A stride beyond the size ends the slice; adding it might overflow.
    if (stride > size || stride < -size) break;
    i += stride;
  }
  budget.allocate(indices.size() * sizeof(Value));
  return indices;
}

}  // namespace

void require_defined(const Value& value) {
  if (!value.is_undefined()) return;
  const auto& reason = std::get<Undefined>(value.data()).reason;
  throw Failure(reason ? *reason : "a value is undefined");
}

Value apply(UnaryOperator op, const Value& operand) {
  if (op == UnaryOperator::kNot) return !is_true(operand);
  require_defined(operand);
  const bool negate = op == UnaryOperator::kNegate;
  if (const auto integer = as_integer(operand)) {
    return negate ? apply_integers(BinaryOperator::kSubtract, 0, *integer) : Value(*integer);
  }
  if (const double* floating = operand.floating()) return negate ? -*floating : *floating;
  throw failure("bad operand type for unary {}: '{}'", negate ? '-' : '+', type_name(operand));
}

Value apply(BinaryOperator op, const Value& left, const Value& right, Budget& budget) {
  require_defined(left);
  const auto a_integer = as_integer(left);
  const auto b_integer = as_integer(right);
  if (op == BinaryOperator::kModulo && left.string() != nullptr)
    return format_percent(*left.string(), right, budget);
  require_defined(right);
  if (a_integer && b_integer) return apply_integers(op, *a_integer, *b_integer);
  const auto a = as_floating(left);
  const auto b = as_floating(right);
  if (a && b) return apply_floats(op, *a, *b);
  if (op == BinaryOperator::kAdd) return add(left, right, budget);
  if (op == BinaryOperator::kMultiply && is_repeatable(left) && b_integer)
    return repeat(left, *b_integer, budget);
  if (op == BinaryOperator::kMultiply && is_repeatable(right) && a_integer)
    return repeat(right, *a_integer, budget);
  fail_operands(op, left, right);
}

bool compare(Comparison op, const Value& left, const Value& right, Budget& budget) {
  switch (op) {
    case Comparison::kEqual:
      return equals(left, right, budget);
    case Comparison::kNotEqual:
      return !equals(left, right, budget);
    case Comparison::kIn:
      return contains(right, left, budget);
    case Comparison::kNotIn:
      return !contains(right, left, budget);
    default:
      break;
  }
  require_defined(left);
  require_defined(right);
  const auto is_nan = [](const Value& value) {
    return value.floating() != nullptr && std::isnan(*value.floating());
  };
  if (is_nan(left) || is_nan(right)) return false;
  switch (op) {
    case Comparison::kLess:
      return less(left, right, budget);
    case Comparison::kGreater:
      return less(right, left, budget);
    case Comparison::kLessEqual:
      return !less(right, left, budget);
    default:
      return !less(left, right, budget);
  }
}

bool contains(const Value& haystack, const Value& needle, Budget& budget) {
  if (const std::string* text = haystack.string()) {
    require_defined(needle);
    const std::string* part = needle.string();
    if (part == nullptr) {
      throw failure("'in <string>' requires string as left operand, not {}", type_name(needle));
    }
    budget.read(text->size());
    return text->find(*part) != std::string::npos;
  }
  if (const Sequence* sequence = haystack.sequence()) {
    return std::ranges::any_of(sequence->items,
                               [&](const Value& item) { return equals(item, needle, budget); });
  }
  if (const Dict* dict = haystack.dict()) {
    budget.spend(1 + dict->entries.size() / 8);
    return dict->find(needle) != nullptr;
  }
  if (haystack.is_undefined()) return false;
  throw failure("argument of type '{}' is not iterable", type_name(haystack));
}

Value slice(const Value& object, const Value& start, const Value& stop, const Value& step, Budget& budget) {
  require_defined(object);
  if (const std::string* text = object.string()) {
    budget.read(text->size());
    budget.allocate(text->size());
    const std::vector<std::string_view> parts = characters(*text);
    std::string result;
    for (const std::size_t i :
         slice_indices(static_cast<std::int64_t>(parts.size()), start, stop, step, budget)) {
      result.append(parts[i]);
    }
    return result;
  }
  const Sequence* sequence = object.sequence();
  if (sequence == nullptr || sequence->kind == Sequence::Kind::kGenerator) {
    throw failure("'{}' object is not subscriptable", type_name(object));
  }
  std::vector<Value> items;
  const auto size = static_cast<std::int64_t>(sequence->items.size());
  for (const std::size_t i : slice_indices(size, start, stop, step, budget))
    items.push_back(sequence->items[i]);
  return Sequence(sequence->kind, std::move(items));
}

}  // namespace eider::jinja
