#include "text/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>

#include "base/check.h"
#include "text/utf8.h"
#include "text/valid_copy.h"

namespace eider {

namespace {

// Unicode's White_Space, as the inside of a character class.
constexpr std::string_view kWhiteSpace =
    R"(\x{09}-\x{0D}\x{20}\x{85}\x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000})";

// Writes White_Space out where the pattern says \s, and its complement where it says \S outside a class.
std::string spell_out_white_space(std::string_view pattern) {
  std::string result;
  bool in_class = false;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const char c = pattern[i];
    if (c == '\\' && i + 1 < pattern.size()) {
      const char escaped = pattern[++i];
      if (escaped == 's' && in_class) {
        result.append(kWhiteSpace);
      } else if (escaped == 's' || (escaped == 'S' && !in_class)) {
        result.append(escaped == 's' ? "[" : "[^").append(kWhiteSpace).append("]");
      } else {
        result.append({c, escaped});
      }
      continue;
    }
    if (c == '[') in_class = true;
    if (c == ']') in_class = false;
    result.push_back(c);
  }
  return result;
}

// Patterns that fail to possess a repeat push a few words a character; the machine stack is not ours to use
// for that.
constexpr std::size_t kJitStackStart = std::size_t{32} << 10;
constexpr std::size_t kJitStackMax = std::size_t{8} << 20;

// Most backtracks of one search. A run of ten million spaces has that many in linear time; patterns that come
// with a file may have no such bound.
std::uint32_t backtrack_limit(std::size_t bytes) {
  constexpr std::size_t kLeast = 100'000, kForEachByte = 32;
  const std::size_t limit = kLeast + kForEachByte * bytes;
  return static_cast<std::uint32_t>(std::min<std::size_t>(limit, std::numeric_limits<std::uint32_t>::max()));
}

}  // namespace

void Regex::FreeCode::operator()(pcre2_real_code_8* code) const {
  pcre2_code_free(code);
}
void Regex::Scratch::Free::operator()(pcre2_real_match_data_8* data) const {
  pcre2_match_data_free(data);
}
void Regex::Scratch::Free::operator()(pcre2_real_match_context_8* context) const {
  pcre2_match_context_free(context);
}
void Regex::Scratch::Free::operator()(pcre2_real_jit_stack_8* stack) const {
  pcre2_jit_stack_free(stack);
}

Regex::Scratch::Scratch()
    : data_(pcre2_match_data_create(1, nullptr)),
      context_(pcre2_match_context_create(nullptr)),
      stack_(pcre2_jit_stack_create(kJitStackStart, kJitStackMax, nullptr)) {
  EIDER_CHECK(data_ && context_);
  pcre2_jit_stack_assign(context_.get(), nullptr, stack_.get());
}

Result<Regex> Regex::compile(std::string_view pattern) {
  const std::string spelled = spell_out_white_space(pattern);
  int code_number = 0;
  PCRE2_SIZE offset = 0;
  pcre2_code* code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(spelled.data()), spelled.size(),
                                   PCRE2_UTF | PCRE2_UCP, &code_number, &offset, nullptr);
  if (code == nullptr) {
    std::string reason(256, '\0');
    const int length =
        pcre2_get_error_message(code_number, reinterpret_cast<PCRE2_UCHAR*>(reason.data()), 256);
    reason.resize(length > 0 ? static_cast<std::size_t>(length) : 0);
    return error("pattern '{}': {}", pattern, reason);
  }
  // Where no executable memory is to be had, PCRE2 interprets; the matches are the same.
  pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);
  return Regex(code);
}

void Regex::for_each_match(std::string_view subject, Scratch& scratch, FunctionRef<void(Match)> take,
                           bool is_valid) const {
  const auto for_each = [&](std::string_view valid, FunctionRef<void(Match)> take_match) {
    for (std::size_t from = 0; from < valid.size();) {
      const std::optional<Match> match = find(valid, from, scratch);
      if (!match) return;
      take_match(*match);
      from = match->end;
    }
  };
  if (is_valid || is_valid_utf8(subject)) return for_each(subject, take);
  ValidCopy copy(subject);
  for_each(copy.text(), [&](Match match) {
    const std::size_t begin = copy.original_offset(match.begin);
    take({begin, copy.original_offset(match.end)});
  });
}

std::optional<Regex::Match> Regex::find(std::string_view subject, std::size_t from, Scratch& scratch) const {
  pcre2_set_match_limit(scratch.context_.get(), backtrack_limit(subject.size() - from));
  const int found =
      pcre2_match(code_.get(), reinterpret_cast<PCRE2_SPTR>(subject.data()), subject.size(), from,
                  PCRE2_NOTEMPTY | PCRE2_NO_UTF_CHECK, scratch.data_.get(), scratch.context_.get());
  if (found < 0) return std::nullopt;
  const PCRE2_SIZE* bounds = pcre2_get_ovector_pointer(scratch.data_.get());
  return Match{bounds[0], bounds[1]};
}

}  // namespace eider
