#include "text/normalize.h"

#include <utf8proc.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <utility>

#include "text/utf8.h"

namespace eider {

namespace {

using Kind = NormalizerStep::Kind;

// Bytes of `text` up to the first that is not part of a character.
std::size_t valid_prefix(std::string_view text) {
  std::size_t length = 0;
  while (length < text.size()) {
    const Utf8Character character = first_utf8(text.substr(length));
    if (character.status != Utf8Status::kComplete) break;
    length += character.length;
  }
  return length;
}

// Appends to `result` what `append` makes of the runs of valid UTF-8, and the bytes between them.
template <class Append>
std::string_view map_valid_runs(std::string_view text, std::string& result, Append append) {
  result.clear();
  while (!text.empty()) {
    const std::size_t length = valid_prefix(text);
    if (length > 0) append(text.substr(0, length), result);
    text.remove_prefix(length);
    if (text.empty()) break;
    result.push_back(text.front());
    text.remove_prefix(1);
  }
  return result;
}

template <class Append>
std::string_view map_characters(std::string_view text, std::string& result, Append append) {
  return map_valid_runs(text, result, [&](std::string_view valid, std::string& mapped) {
    while (!valid.empty()) {
      const Utf8Character character = first_utf8(valid);
      append(character.code_point, mapped);
      valid.remove_prefix(character.length);
    }
  });
}

std::string_view normalize_form(int options, std::string_view text, std::string& storage) {
  // ASCII is in every form.
  const auto is_ascii = [](char c) { return static_cast<std::uint8_t>(c) < 0x80; };
  if (std::ranges::all_of(text, is_ascii)) return text;
  return map_valid_runs(text, storage, [options](std::string_view valid, std::string& result) {
    utf8proc_uint8_t* mapped = nullptr;
    const utf8proc_ssize_t length = utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(valid.data()),
                                                 static_cast<utf8proc_ssize_t>(valid.size()), &mapped,
                                                 static_cast<utf8proc_option_t>(UTF8PROC_STABLE | options));
    const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owner(mapped, &std::free);
    if (length < 0) {
      result.append(valid);
    } else {
      result.append(reinterpret_cast<const char*>(mapped), static_cast<std::size_t>(length));
    }
  });
}

void append_lower(char32_t code_point, std::string& result) {
  constexpr char32_t kDottedI = 0x130, kDotAbove = 0x307;  // the one letter whose lower case is two
  if (code_point == kDottedI) {
    append_utf8(result, 'i');
    append_utf8(result, kDotAbove);
  } else {
    append_utf8(result, static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(code_point))));
  }
}

void append_unless_mark(char32_t code_point, std::string& result) {
  const auto category = utf8proc_category(static_cast<utf8proc_int32_t>(code_point));
  const bool is_mark = category >= UTF8PROC_CATEGORY_MN && category <= UTF8PROC_CATEGORY_ME;
  if (!is_mark) append_utf8(result, code_point);
}

std::string_view strip(std::string_view text, bool at_start, bool at_end) {
  while (at_start && !text.empty()) {
    const Utf8Character character = first_utf8(text);
    if (!is_white_space(character.code_point)) break;
    text.remove_prefix(character.length);
  }
  while (at_end && !text.empty()) {
    const Utf8Character character = last_utf8(text);
    if (!is_white_space(character.code_point)) break;
    text.remove_suffix(character.length);
  }
  return text;
}

std::string replace_all(std::string_view text, std::string_view pattern, std::string_view content) {
  std::string result;
  result.reserve(text.size());
  while (true) {
    const std::size_t found = text.find(pattern);
    result.append(text.substr(0, found));
    if (found == std::string_view::npos) return result;
    result.append(content);
    text.remove_prefix(found + pattern.size());
  }
}

std::string replace_matches(std::string_view text, const Regex& pattern, std::string_view content) {
  std::string result;
  std::size_t done = 0;
  Regex::Scratch scratch;
  pattern.for_each_match(text, scratch, [&](Regex::Match match) {
    result.append(text.substr(done, match.begin - done)).append(content);
    done = match.end;
  });
  return result.append(text.substr(done));
}

// How many times longer a step can make a text.
std::size_t growth(const NormalizerStep& step) {
  const bool replaces = step.kind == Kind::kReplace || step.kind == Kind::kReplaceMatches;
  if (!replaces) return 1;
  const std::size_t shortest_match = step.kind == Kind::kReplace ? step.pattern.size() : 1;
  return std::max<std::size_t>(1, step.content.size() / shortest_match);
}

}  // namespace

std::string_view normalize_nfc(std::string_view text, std::string& storage) {
  return normalize_form(UTF8PROC_COMPOSE, text, storage);
}

Result<Normalizer> Normalizer::create(std::vector<NormalizerStep> steps) {
  constexpr std::size_t kMostSteps = 64, kMostGrowth = 256, kLongestPrefix = 256;
  if (steps.size() > kMostSteps)
    return error("{} normalizers; at most {} are followed", steps.size(), kMostSteps);
  std::vector<Prepared> prepared;
  std::size_t total_growth = 1;
  for (NormalizerStep& step : steps) {
    total_growth *= growth(step);
    if (total_growth > kMostGrowth || (step.kind == Kind::kPrepend && step.content.size() > kLongestPrefix))
      return error("the normalizer could make a text more than {} times as long", kMostGrowth);
    Prepared& one = prepared.emplace_back();
    if (step.kind == Kind::kReplaceMatches) {
      EIDER_TRY(one.pattern, Regex::compile(step.pattern));
    } else if (step.kind == Kind::kCharacterMap || step.kind == Kind::kCharacterMapByGraphemes) {
      EIDER_TRY(one.map, CharacterMap::parse(step.content));
      step.content.clear();
    }
    one.step = std::move(step);
  }
  return Normalizer(std::move(prepared));
}

std::string_view Normalizer::apply(const Prepared& prepared, std::string_view text, std::string& storage) {
  const NormalizerStep& step = prepared.step;
  switch (step.kind) {
    case Kind::kNfc:
      return normalize_nfc(text, storage);
    case Kind::kNfd:
      return normalize_form(UTF8PROC_DECOMPOSE, text, storage);
    case Kind::kNfkc:
      return normalize_form(UTF8PROC_COMPOSE | UTF8PROC_COMPAT, text, storage);
    case Kind::kNfkd:
      return normalize_form(UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT, text, storage);
    case Kind::kLowercase:
      return map_characters(text, storage, append_lower);
    case Kind::kStripAccents:
      return map_characters(text, storage, append_unless_mark);
    case Kind::kStrip:
      return strip(text, step.at_start, step.at_end);
    case Kind::kPrepend:
      if (text.empty()) return text;
      return storage.assign(step.content).append(text);
    case Kind::kReplace:
      if (text.find(step.pattern) == std::string_view::npos) return text;
      return storage = replace_all(text, step.pattern, step.content);
    case Kind::kReplaceMatches:
      return storage = replace_matches(text, *prepared.pattern, step.content);
    case Kind::kCharacterMap:
      return map_valid_runs(text, storage, [&](std::string_view valid, std::string& result) {
        prepared.map->apply(valid, result);
      });
    case Kind::kCharacterMapByGraphemes:
      return map_valid_runs(text, storage, [&](std::string_view valid, std::string& result) {
        prepared.map->apply_by_graphemes(valid, result);
      });
  }
  return text;
}

std::string_view Normalizer::apply(std::string_view text, std::string& storage, bool continues_text) const {
  std::string result;
  for (const Prepared& prepared : steps_) {
    if (continues_text && prepared.step.kind == Kind::kPrepend) continue;
    const std::string_view changed = apply(prepared, text, result);
    if (changed.data() == result.data()) {
      storage.swap(result);
      text = storage;
    } else {
      text = changed;  // a part of what it was
    }
  }
  return text;
}

}  // namespace eider
