// The decoder of a tokenizer.json.
#include <algorithm>

#include "text/word_cuts.h"
#include "weights/tokenizer_component.h"

namespace eider {
namespace {

/// Replace: U+2581 becomes a space.
Status check_replace(const JsonElement& part) {
  EIDER_TRY(const std::string pattern, plain_component_pattern(part));
  EIDER_TRY(const auto content, part.string("content"));
  if (pattern == kSentencePieceSpace && content == " ") return {};
  return error("{}: only U+2581 can be replaced, by a space", part.place);
}

/// Strip: one space at the start, which is that of the whole text once the tokens are fused.
Status check_strip(const JsonElement& part, bool fused) {
  EIDER_TRY(const auto content, part.string("content"));
  const auto start = part.find("start"), stop = part.find("stop");
  const bool one_space = start && stop && content == " " && start->integer().ok() && *start->integer() == 1 &&
                         stop->integer().ok() && *stop->integer() == 0;
  if (one_space && fused) return {};
  return error("{}: only one space at the start can be stripped, after Fuse", part.place);
}

/// The decoders of a character-level tokenizer: spaces back from U+2581, bytes from byte tokens, and perhaps
/// fewer spaces at the start.
Status read_character_decoder(const std::vector<JsonElement>& parts, Vocabulary& vocabulary) {
  bool spells_spaces = false, fused = false;
  for (const JsonElement& part : parts) {
    EIDER_TRY(const auto type, part.string("type"));
    if (type == "Replace") {
      EIDER_TRY_STATUS(check_replace(part));
      spells_spaces = true;
    } else if (type == "Metaspace") {
      EIDER_TRY(const SpaceRule rule, read_metaspace(part));
      if (fused) return error("{}: Metaspace is not supported after Fuse", part.place);
      if (rule.prefix != SpaceRule::Prefix::kNever) vocabulary.leading_space = LeadingSpace::kFirstTokenBared;
      spells_spaces = true;
    } else if (type == "Strip") {
      EIDER_TRY_STATUS(check_strip(part, fused));
      if (vocabulary.leading_space != LeadingSpace::kKept)
        return error("{}: Strip is not supported beside another that drops spaces", part.place);
      vocabulary.leading_space = LeadingSpace::kOneDropped;
    } else if (type == "Fuse") {
      fused = true;
    } else if (type != "ByteFallback") {
      return unknown_component(part, "Replace, Metaspace, ByteFallback, Fuse, Strip, ByteLevel");
    }
  }
  if (!spells_spaces)
    return error(
        "decoder: Metaspace or a Replace of U+2581 is missing; without it the reference puts a space "
        "between tokens, which is not supported");
  return {};
}

}  // namespace

Status read_decoder(const JsonElement& root, Vocabulary& vocabulary) {
  EIDER_TRY(const auto parts, component_parts(root.find("decoder"), "decoders"));
  const auto is_byte_level = [](const JsonElement& part) {
    const auto type = part.string("type");
    return type.ok() && *type == "ByteLevel";
  };
  const bool byte_level = std::ranges::any_of(parts, is_byte_level);
  if (byte_level != (vocabulary.model == "gpt2"))
    return error("decoder: byte-level where the pre-tokenizer is not, or the other way round");
  if (!byte_level) return read_character_decoder(parts, vocabulary);
  if (parts.size() != 1) return error("decoder: nothing but ByteLevel is supported beside ByteLevel");
  return {};
}

}  // namespace eider
