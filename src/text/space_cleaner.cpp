#include "text/space_cleaner.h"

#include <array>
#include <cstddef>
#include <utility>

namespace eider {

namespace {

// What transformers replaces, one pair after the other over the whole text.
constexpr std::array<std::pair<std::string_view, std::string_view>, 10> kReplacements = {{{" .", "."},
                                                                                          {" ?", "?"},
                                                                                          {" !", "!"},
                                                                                          {" ,", ","},
                                                                                          {" ' ", "'"},
                                                                                          {" n't", "n't"},
                                                                                          {" 'm", "'m"},
                                                                                          {" 's", "'s"},
                                                                                          {" 've", "'ve"},
                                                                                          {" 're", "'re"}}};
constexpr std::string_view kLetters = " .?!,'ntmsver";  // of the patterns
constexpr std::size_t kLongestPattern = 4;

std::string clean(std::string text) {
  for (const auto& [from, to] : kReplacements) {
    for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
      text.replace(at, from.size(), to);
  }
  return text;
}

// Whether no replacement can reach across `at`, whatever follows `text`. Patterns begin with a space, and
// nothing but spaces is ever dropped.
bool is_safe_cut(std::string_view text, std::size_t at) {
  constexpr std::size_t kReach = kLongestPattern - 1;
  const char before = text[at - 1];
  if (at < text.size() && (text[at] & 0xC0) == 0x80) return false;  // inside a character
  if (kLetters.find(before) == std::string_view::npos) return true;
  if (at >= kReach && text.substr(at - kReach, kReach).find(' ') == std::string_view::npos) return true;
  // Of a run of spaces the last two at most are dropped: " ' m" loses one to " ' ", then one to " 'm".
  return before == ' ' && text.substr(at).starts_with("  ");
}

}  // namespace

std::string SpaceCleaner::push(std::string_view text) {
  constexpr std::size_t kMostHeld = 64;  // bytes; nothing but nonsense is undecided for longer
  held_.append(text);
  std::size_t cut = held_.size();
  while (cut > 0 && !is_safe_cut(held_, cut)) --cut;
  if (cut == 0 && held_.size() > kMostHeld) cut = held_.size();
  std::string certain = clean(held_.substr(0, cut));
  held_.erase(0, cut);
  return certain;
}

std::string SpaceCleaner::finish() {
  return clean(std::exchange(held_, {}));
}

}  // namespace eider
