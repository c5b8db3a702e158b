// The inside of a string literal to its value, with Python's escapes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace eider::jinja {

/// Escapes that Python does not know stay as written. Throws Failure, at `offset`, for \x, \u and \U without
/// their digits.
std::string unescape(std::string_view literal, std::uint32_t offset);

}  // namespace eider::jinja
