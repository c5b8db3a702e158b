#include "text/character_map.h"

#include <utf8proc.h>

#include "text/utf8.h"

namespace eider {

namespace {

std::uint32_t little_endian(std::string_view bytes, std::size_t offset) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i)
    value |= std::uint32_t{static_cast<std::uint8_t>(bytes[offset + i])} << (8 * i);
  return value;
}

// The fields of a unit, as Darts-clone packs them.
bool has_leaf(std::uint32_t unit) {
  return ((unit >> 8) & 1) != 0;
}
std::uint32_t value(std::uint32_t unit) {
  return unit & 0x7FFFFFFFu;
}
std::uint32_t label(std::uint32_t unit) {
  return unit & 0x800000FFu;
}
std::uint32_t offset(std::uint32_t unit) {
  return (unit >> 10) << ((unit & (1u << 9)) >> 6);
}

// Bytes of the grapheme cluster that `text` begins with.
std::size_t grapheme_size(std::string_view text) {
  utf8proc_int32_t state = 0;
  Utf8Character previous = first_utf8(text);
  std::size_t size = previous.length;
  while (size < text.size()) {
    const Utf8Character next = first_utf8(text.substr(size));
    if (utf8proc_grapheme_break_stateful(static_cast<utf8proc_int32_t>(previous.code_point),
                                         static_cast<utf8proc_int32_t>(next.code_point), &state))
      break;
    size += next.length;
    previous = next;
  }
  return size;
}

}  // namespace

Result<CharacterMap> CharacterMap::parse(std::string_view blob) {
  constexpr std::size_t kUnit = sizeof(std::uint32_t);
  if (blob.size() < kUnit) return error("the character map is cut short");
  const std::size_t trie_bytes = little_endian(blob, 0);
  blob.remove_prefix(kUnit);
  if (trie_bytes == 0 || trie_bytes % kUnit != 0 || trie_bytes > blob.size())
    return error("the character map's trie of {} bytes does not fit its {} bytes", trie_bytes, blob.size());
  CharacterMap map;
  map.units_.reserve(trie_bytes / kUnit);
  for (std::size_t i = 0; i < trie_bytes; i += kUnit) map.units_.push_back(little_endian(blob, i));
  map.replacements_ = blob.substr(trie_bytes);
  return map;
}

std::optional<CharacterMap::Match> CharacterMap::find(std::string_view text, Which which) const {
  // Beyond any that Unicode defines; a hostile map could otherwise make a text endlessly longer.
  constexpr std::size_t kLongestReplacement = 256;
  std::optional<Match> found;
  std::size_t node = offset(units_[0]);
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<std::uint8_t>(text[i]);
    node ^= byte;
    if (node >= units_.size() || label(units_[node]) != byte) break;
    const std::uint32_t unit = units_[node];
    node ^= offset(unit);
    if (!has_leaf(unit)) continue;
    if (node >= units_.size() || value(units_[node]) >= replacements_.size()) break;
    const std::string_view rest =
        std::string_view(replacements_).substr(value(units_[node]), kLongestReplacement);
    found = Match{i + 1, rest.substr(0, rest.find('\0'))};
    if (which == Which::kShortest) break;
  }
  return found;
}

void CharacterMap::apply(std::string_view valid, std::string& result) const {
  while (!valid.empty()) {
    const auto match = find(valid, Which::kLongest);
    const std::size_t size = match ? match->size : first_utf8(valid).length;
    result.append(match ? match->replacement : valid.substr(0, size));
    valid.remove_prefix(size);
  }
}

void CharacterMap::apply_by_graphemes(std::string_view valid, std::string& result) const {
  constexpr std::size_t kShortGrapheme = 6;  // bytes
  while (!valid.empty()) {
    std::string_view grapheme = valid.substr(0, grapheme_size(valid));
    valid.remove_prefix(grapheme.size());
    if (grapheme.size() < kShortGrapheme) {
      if (const auto match = find(grapheme, Which::kShortest)) {
        result.append(match->replacement);
        continue;
      }
    }
    while (!grapheme.empty()) {
      const std::string_view character = grapheme.substr(0, first_utf8(grapheme).length);
      const auto match = find(character, Which::kShortest);
      result.append(match ? match->replacement : character);
      grapheme.remove_prefix(character.size());
    }
  }
}

}  // namespace eider
