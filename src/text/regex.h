// Regex: a PCRE2 pattern with JIT over UTF-8 text, with the Unicode properties that pre-tokenizers are
// written in.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string_view>

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

  /// The first match that is not empty, at or after `from`. `subject` must be valid UTF-8 (unchecked) and
  /// `from` a character's start. A pattern that backtracks beyond a multiple of the subject's length matches
  /// nothing.
  std::optional<Match> find(std::string_view subject, std::size_t from, Scratch& scratch) const;

 private:
  struct FreeCode {
    void operator()(pcre2_real_code_8* code) const;
  };
  explicit Regex(pcre2_real_code_8* code) : code_(code) {}
  std::unique_ptr<pcre2_real_code_8, FreeCode> code_;
};

}  // namespace eider
