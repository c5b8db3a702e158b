#include "text/utf8.h"

#include <algorithm>

#include "base/check.h"

namespace eider {

namespace {

struct LeadByte {
  std::size_t length;  // 0: no character begins with this byte
  std::uint8_t second_min = 0x80;
  std::uint8_t second_max = 0xBF;
};

LeadByte classify(std::uint8_t lead) {
  if (lead < 0x80) return {1};
  if (lead < 0xC2) return {0};
  if (lead < 0xE0) return {2};
  if (lead == 0xE0) return {3, 0xA0};
  if (lead == 0xED) return {3, 0x80, 0x9F};  // no surrogates
  if (lead < 0xF0) return {3};
  if (lead == 0xF0) return {4, 0x90};
  if (lead < 0xF4) return {4};
  if (lead == 0xF4) return {4, 0x80, 0x8F};
  return {0};
}

}  // namespace

Utf8Character first_utf8(std::string_view text) {
  EIDER_CHECK(!text.empty());
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
  const LeadByte lead = classify(byte(0));
  if (lead.length == 0) return {Utf8Status::kIllFormed, 1, kReplacementCharacter};
  if (lead.length == 1) return {Utf8Status::kComplete, 1, byte(0)};
  char32_t code_point = byte(0) & (0x7F >> lead.length);
  for (std::size_t i = 1; i < lead.length; ++i) {
    if (i == text.size()) return {Utf8Status::kTruncated, i, kReplacementCharacter};
    const std::uint8_t min = i == 1 ? lead.second_min : 0x80;
    const std::uint8_t max = i == 1 ? lead.second_max : 0xBF;
    if (byte(i) < min || byte(i) > max) return {Utf8Status::kIllFormed, i, kReplacementCharacter};
    code_point = (code_point << 6) | (byte(i) & 0x3Fu);
  }
  return {Utf8Status::kComplete, lead.length, code_point};
}

Utf8Character last_utf8(std::string_view text) {
  constexpr std::size_t kLongest = 4;
  for (std::size_t length = 1; length <= std::min(kLongest, text.size()); ++length) {
    const Utf8Character character = first_utf8(text.substr(text.size() - length));
    if (character.status == Utf8Status::kComplete && character.length == length) return character;
  }
  return {Utf8Status::kIllFormed, 1, kReplacementCharacter};
}

bool is_white_space(char32_t code_point) {
  return (code_point >= 0x09 && code_point <= 0x0D) || code_point == 0x20 || code_point == 0x85 ||
         code_point == 0xA0 || code_point == 0x1680 || (code_point >= 0x2000 && code_point <= 0x200A) ||
         code_point == 0x2028 || code_point == 0x2029 || code_point == 0x202F || code_point == 0x205F ||
         code_point == 0x3000;
}

bool is_valid_utf8(std::string_view text) {
  while (!text.empty()) {
    const Utf8Character character = first_utf8(text);
    if (character.status != Utf8Status::kComplete) return false;
    text.remove_prefix(character.length);
  }
  return true;
}

void append_utf8(std::string& text, char32_t code_point) {
  const auto put = [&](char32_t byte) { text.push_back(static_cast<char>(byte)); };
  const auto put_continuation = [&](int shift) { put(0x80 | ((code_point >> shift) & 0x3F)); };
  if (code_point < 0x80) {
    put(code_point);
  } else if (code_point < 0x800) {
    put(0xC0 | (code_point >> 6));
    put_continuation(0);
  } else if (code_point < 0x10000) {
    put(0xE0 | (code_point >> 12));
    put_continuation(6);
    put_continuation(0);
  } else {
    put(0xF0 | (code_point >> 18));
    put_continuation(12);
    put_continuation(6);
    put_continuation(0);
  }
}

}  // namespace eider
