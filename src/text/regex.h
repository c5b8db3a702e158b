// Regex: a PCRE2 pattern with JIT over UTF-8 text, with the Unicode properties that pre-tokenizers are
// written in.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string_view>

#include "base/function_ref.h"
#include "base/result.h"

struct pcre2_real_code_8;
struct pcre2_real_match_data_8;
struct pcre2_real_match_context_8;
struct pcre2_real_jit_stack_8;

namespace eider {

class Regex {
 public:
  /// \s and \S mean Unicode's White_Space property (PCRE2's own \s also takes U+180E).
  static Result<Regex> compile(std::string_view pattern);

  /// Scratch of one thread's matching, for any number of patterns.
  class Scratch {
   public:
    Scratch();

   private:
    friend class Regex;
    struct Free {
      void operator()(pcre2_real_match_data_8* data) const;
      void operator()(pcre2_real_match_context_8* context) const;
      void operator()(pcre2_real_jit_stack_8* stack) const;
    };
    std::unique_ptr<pcre2_real_match_data_8, Free> data_;
    std::unique_ptr<pcre2_real_match_context_8, Free> context_;
    std::unique_ptr<pcre2_real_jit_stack_8, Free> stack_;
  };

  struct Match {
    std::size_t begin;
    std::size_t end;
  };

  /// Calls `take` with every match that is not empty, in order. A byte that is not part of a character is
  /// matched as U+FFFD. A pattern that backtracks beyond a multiple of the subject's length matches nothing
  /// from there on. `is_valid`: `subject` is known to be UTF-8.
  void for_each_match(std::string_view subject, Scratch& scratch, FunctionRef<void(Match)> take,
                      bool is_valid = false) const;

 private:
  /// In valid UTF-8, at or after `from`, a character's start.
  std::optional<Match> find(std::string_view subject, std::size_t from, Scratch& scratch) const;

  struct FreeCode {
    void operator()(pcre2_real_code_8* code) const;
  };
  explicit Regex(pcre2_real_code_8* code) : code_(code) {}
  std::unique_ptr<pcre2_real_code_8, FreeCode> code_;
};

}  // namespace eider
