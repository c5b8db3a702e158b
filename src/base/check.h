// EIDER_CHECK: what must hold if our own code is right. Prints the values and the place, then aborts. Never
// for what comes from outside (that is a Result).
#pragma once

#include <fmt/format.h>

#include <string>

namespace eider {

/// Prints "file:line: check failed: text" and aborts.
[[noreturn]] void check_failed(const char* file, int line, const std::string& text);

}  // namespace eider

#define EIDER_CHECK(condition)                                               \
  do {                                                                       \
    if (!(condition)) ::eider::check_failed(__FILE__, __LINE__, #condition); \
  } while (false)

#define EIDER_CHECK_EQ(a, b)                                                                                \
  do {                                                                                                      \
    const auto& eider_a = (a);                                                                              \
    const auto& eider_b = (b);                                                                              \
    if (!(eider_a == eider_b))                                                                              \
      ::eider::check_failed(__FILE__, __LINE__, fmt::format(#a " == " #b " ({} vs {})", eider_a, eider_b)); \
  } while (false)
