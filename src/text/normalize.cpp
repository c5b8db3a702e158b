#include "text/normalize.h"

#include <utf8proc.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>

#include "text/utf8.h"

namespace eider {

namespace {

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

void append_nfc(std::string_view valid, std::string& result) {
  utf8proc_uint8_t* composed = nullptr;
  const utf8proc_ssize_t length = utf8proc_map(
      reinterpret_cast<const utf8proc_uint8_t*>(valid.data()), static_cast<utf8proc_ssize_t>(valid.size()),
      &composed, static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owner(composed, &std::free);
  if (length < 0) {
    result.append(valid);
  } else {
    result.append(reinterpret_cast<const char*>(composed), static_cast<std::size_t>(length));
  }
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

// `text` after one step: itself, or a view of `storage`.
std::string_view apply_step(const NormalizerStep& step, std::string_view text, std::string& storage) {
  switch (step.kind) {
    case NormalizerStep::Kind::kNfc:
      return normalize_nfc(text, storage);
    case NormalizerStep::Kind::kPrepend:
      if (text.empty()) return text;
      return storage.assign(step.content).append(text);
    case NormalizerStep::Kind::kReplace:
      if (text.find(step.pattern) == std::string_view::npos) return text;
      return storage = replace_all(text, step.pattern, step.content);
  }
  return text;
}

}  // namespace

std::string_view normalize_nfc(std::string_view text, std::string& storage) {
  // ASCII is in NFC.
  const auto is_ascii = [](char c) { return static_cast<std::uint8_t>(c) < 0x80; };
  if (std::ranges::all_of(text, is_ascii)) return text;
  storage.clear();
  while (!text.empty()) {
    const std::size_t length = valid_prefix(text);
    if (length > 0) append_nfc(text.substr(0, length), storage);
    text.remove_prefix(length);
    if (text.empty()) break;
    storage.push_back(text.front());
    text.remove_prefix(1);
  }
  return storage;
}

std::string_view Normalizer::apply(std::string_view text, std::string& storage, bool continues_text) const {
  std::string result;
  for (const NormalizerStep& step : steps_) {
    if (continues_text && step.kind == NormalizerStep::Kind::kPrepend) continue;
    const std::string_view changed = apply_step(step, text, result);
    if (changed.data() == text.data()) continue;
    storage.swap(result);
    text = storage;
  }
  return text;
}

}  // namespace eider
