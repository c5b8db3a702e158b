// Budget: what one rendering may use. Templates come with models from anywhere, so an endless loop, a string
// doubled again and again, or a macro that calls itself must end in an error.
#pragma once

#include <cstddef>
#include <cstdint>

#include "text/jinja/failure.h"

namespace eider::jinja {

struct Limits {
  std::uint64_t steps = 20'000'000;                  ///< nodes evaluated, elements visited; about two seconds
  std::size_t bytes = std::size_t{512} << 20;        ///< of all strings and lists ever made, output included
  std::size_t string_bytes = std::size_t{64} << 20;  ///< of one string, and of the output
  int call_depth = 64;                               ///< macros within macros
};

/// Nesting of expressions and blocks in a template, and of lists and dicts in a value.
inline constexpr int kMaxNesting = 200;

class Budget {
 public:
  explicit Budget(Limits limits = {}) : limits_(limits) {}

  void spend(std::uint64_t steps) {
    if (steps > limits_.steps - steps_) throw failure("the template takes more than {} steps", limits_.steps);
    steps_ += steps;
  }

  /// For work that reads `bytes` of text.
  void read(std::size_t bytes) { spend(1 + bytes / 64); }

  /// For a string of `size` bytes that grows by `added`.
  void grow_string(std::size_t size, std::size_t added) {
    if (added > limits_.string_bytes || size > limits_.string_bytes - added) {
      throw failure("the template makes a string of more than {} bytes", limits_.string_bytes);
    }
    allocate(added);
    read(added);
  }

  /// For a new string of `bytes`; to be called before it is made.
  void make_string(std::size_t bytes) { grow_string(0, bytes); }

  void allocate(std::size_t bytes) {
    if (bytes > limits_.bytes - bytes_) throw failure("the template needs more than {} bytes", limits_.bytes);
    bytes_ += bytes;
  }

  void enter_call() {
    if (call_depth_ == limits_.call_depth)
      throw failure("macros call each other more than {} deep", call_depth_);
    ++call_depth_;
  }
  void leave_call() { --call_depth_; }

 private:
  Limits limits_;
  std::uint64_t steps_ = 0;
  std::size_t bytes_ = 0;
  int call_depth_ = 0;
};

}  // namespace eider::jinja
