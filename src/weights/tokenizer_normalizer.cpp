// The normalizer of a tokenizer.json.
#include <algorithm>
#include <array>
#include <optional>

#include "weights/tokenizer_component.h"

namespace eider {
namespace {

using Kind = NormalizerStep::Kind;

/// Steps that have no settings.
constexpr std::array<std::pair<std::string_view, Kind>, 6> kPlainSteps = {
    {{"NFC", Kind::kNfc},
     {"NFD", Kind::kNfd},
     {"NFKC", Kind::kNfkc},
     {"NFKD", Kind::kNfkd},
     {"Lowercase", Kind::kLowercase},
     {"StripAccents", Kind::kStripAccents}}};

std::optional<std::string> decode_base64(std::string_view text) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  if (text.size() % 4 != 0) return std::nullopt;
  for (int padding = 0; padding < 2 && text.ends_with('='); ++padding) text.remove_suffix(1);
  std::string bytes;
  std::uint32_t bits = 0;
  int count = 0;
  for (const char c : text) {
    const std::size_t digit = kDigits.find(c);
    if (digit == std::string_view::npos) return std::nullopt;
    bits = (bits << 6) | static_cast<std::uint32_t>(digit);
    count += 6;
    if (count < 8) continue;
    count -= 8;
    bytes.push_back(static_cast<char>(bits >> count));
  }
  return bytes;
}

Result<NormalizerStep> read_step(const JsonElement& part) {
  EIDER_TRY(const auto type, part.string("type"));
  const auto* plain = std::ranges::find(kPlainSteps, type, &std::pair<std::string_view, Kind>::first);
  NormalizerStep step;
  if (plain != kPlainSteps.end()) {
    step.kind = plain->second;
  } else if (type == "Strip") {
    step.kind = Kind::kStrip;
    EIDER_TRY(step.at_start, part.flag("strip_left", true));
    EIDER_TRY(step.at_end, part.flag("strip_right", true));
  } else if (type == "Prepend") {
    step.kind = Kind::kPrepend;
    EIDER_TRY(step.content, part.string("prepend"));
  } else if (type == "Replace") {
    EIDER_TRY(ComponentPattern pattern, component_pattern(part));
    step.kind = pattern.is_regex ? Kind::kReplaceMatches : Kind::kReplace;
    step.pattern = std::move(pattern.text);
    EIDER_TRY(step.content, part.string("content"));
  } else if (type == "Precompiled") {
    EIDER_TRY(const auto text, part.string("precompiled_charsmap"));
    auto map = decode_base64(text);
    if (!map) return error("{}.precompiled_charsmap: not base64", part.place);
    step.kind = Kind::kCharacterMapByGraphemes;
    step.content = *std::move(map);
  } else {
    return unknown_component(
        part, "NFC, NFD, NFKC, NFKD, Lowercase, Strip, StripAccents, Prepend, Replace, Precompiled");
  }
  return step;
}

}  // namespace

Status read_normalizer(const JsonElement& root, Vocabulary& vocabulary) {
  EIDER_TRY(const auto parts, component_parts(root.find("normalizer"), "normalizers"));
  for (const JsonElement& part : parts) {
    EIDER_TRY(NormalizerStep step, read_step(part));
    vocabulary.normalizer.push_back(std::move(step));
  }
  return {};
}

}  // namespace eider
