// Failure: how a template's error travels inside the interpreter. An expression evaluator whose every step
// returned a Result would hide the language it implements, so this folder throws, and ChatTemplate, its only
// door, turns a Failure into an Error.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <utility>

namespace eider::jinja {

class Failure : public std::exception {
 public:
  explicit Failure(std::string cause, std::optional<std::uint32_t> offset = std::nullopt)
      : cause_(std::move(cause)), offset_(offset) {}

  const char* what() const noexcept override { return cause_.c_str(); }
  const std::string& cause() const { return cause_; }
  /// Byte of the source it belongs to, where the thrower knew.
  std::optional<std::uint32_t> offset() const { return offset_; }
  /// Says where, unless an inner place has said so already.
  void locate(std::uint32_t offset) {
    if (!offset_) offset_ = offset;
  }

 private:
  std::string cause_;
  std::optional<std::uint32_t> offset_;
};

/// throw failure("'{}' is undefined", name);
template <class... Args>
Failure failure(fmt::format_string<Args...> format, Args&&... args) {
  return Failure(fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace eider::jinja
