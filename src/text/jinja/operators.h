// Python's operators on values. All throw Failure for operands that do not go together.
#pragma once

#include <optional>

#include "text/jinja/ast.h"
#include "text/jinja/budget.h"
#include "text/jinja/value.h"

namespace eider::jinja {

/// Throws the reason where `value` is undefined.
void require_defined(const Value& value);

Value apply(UnaryOperator op, const Value& operand);
Value apply(BinaryOperator op, const Value& left, const Value& right, Budget& budget);
bool compare(Comparison op, const Value& left, const Value& right, Budget& budget);

/// needle in haystack
bool contains(const Value& haystack, const Value& needle, Budget& budget);

/// object[start:stop:step] of a string, list or tuple; absent and none bounds are open.
Value slice(const Value& object, const Value& start, const Value& stop, const Value& step, Budget& budget);

}  // namespace eider::jinja
