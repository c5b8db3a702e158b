// Result<T>: how a failure of the outside world (a file, a flag, memory, a peer) travels to the person who
// can act on it. Every layer uses it. It knows nothing of logging or exits: only tools/ prints an Error. A
// failure of our own logic is not a Result but an EIDER_CHECK (check.h).
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace eider {

/// One line that says what failed, where, and what to do about it. Callers add the "where" from the inside
/// out.
class [[nodiscard]] Error {
 public:
  explicit Error(std::string message) : message_(std::move(message)) {}

  const std::string& message() const { return message_; }

  /// Puts "where: " in front: Error("has 3 columns").context("tensor a.weight") reads "tensor a.weight: has 3
  /// columns".
  Error context(std::string_view where) && { return Error(fmt::format("{}: {}", where, message_)); }

 private:
  std::string message_;
};

/// error("{} has {} rows, expected {}", name, rows, expected)
template <class... Args>
Error error(fmt::format_string<Args...> format, Args&&... args) {
  return Error(fmt::format(format, std::forward<Args>(args)...));
}

/// A value, or the Error that prevented it.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value)
      : state_(std::in_place_index<0>, std::move(value)) {}  // NOLINT(google-explicit-constructor)
  Result(Error failure)
      : state_(std::in_place_index<1>, std::move(failure)) {}  // NOLINT(google-explicit-constructor)

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  T& value() & { return std::get<0>(state_); }
  const T& value() const& { return std::get<0>(state_); }
  T&& value() && { return std::get<0>(std::move(state_)); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }

  const Error& error() const& { return std::get<1>(state_); }
  Error&& error() && { return std::get<1>(std::move(state_)); }

  /// Adds where it happened to a failure and leaves a value alone.
  Result context(std::string_view where) && {
    if (ok()) return std::move(*this);
    return std::move(*this).error().context(where);
  }

 private:
  std::variant<T, Error> state_;
};

/// Success without a value, or an Error.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Error failure) : state_(std::move(failure)) {}  // NOLINT(google-explicit-constructor)

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }
  const Error& error() const& { return std::get<1>(state_); }
  Error&& error() && { return std::get<1>(std::move(state_)); }

  Status context(std::string_view where) && {
    if (ok()) return {};
    return std::move(*this).error().context(where);
  }

 private:
  std::variant<std::monostate, Error> state_;
};

}  // namespace eider

#define EIDER_CONCAT_INNER(a, b) a##b
#define EIDER_CONCAT(a, b) EIDER_CONCAT_INNER(a, b)

/// EIDER_TRY(auto file, MappedFile::open(path)); returns the Error from the enclosing function, or declares
/// the value.
#define EIDER_TRY(declaration, expression)                           \
  auto EIDER_CONCAT(eider_result_, __LINE__) = (expression);         \
  if (!EIDER_CONCAT(eider_result_, __LINE__).ok())                   \
    return std::move(EIDER_CONCAT(eider_result_, __LINE__)).error(); \
  declaration = std::move(EIDER_CONCAT(eider_result_, __LINE__)).value()

/// EIDER_TRY_STATUS(check_header(bytes)); returns the Error from the enclosing function, or goes on.
#define EIDER_TRY_STATUS(expression)                                \
  do {                                                              \
    auto eider_status = (expression);                               \
    if (!eider_status.ok()) return std::move(eider_status).error(); \
  } while (false)
