#include "weights/tokenizer_component.h"

#include "text/word_cuts.h"
#include "weights/printable.h"

namespace eider {
namespace {

/// A pattern of the file for our engine, where both must mean the same.
Result<std::string> translate_pattern(const JsonElement& pattern) {
  constexpr std::size_t kMostBytes = 16384;
  EIDER_TRY(const auto text, pattern.string());
  if (text.size() > kMostBytes) return error("{}: {} bytes are too long", pattern.place, text.size());
  if (text.find("&&") != std::string_view::npos)
    return error("{}: intersections (&&) of character classes are not supported", pattern.place);
  // In the reference's dialect ^ and $ are the ends of a line.
  return text.find_first_of("^$") == std::string_view::npos ? std::string(text) : "(?m)" + std::string(text);
}

}  // namespace

Result<std::vector<JsonElement>> component_parts(const std::optional<JsonElement>& component,
                                                 std::string_view list) {
  std::vector<JsonElement> parts;
  if (!component) return parts;
  EIDER_TRY(const auto type, component->string("type"));
  if (type != "Sequence") {
    parts.push_back(*component);
    return parts;
  }
  EIDER_TRY(const JsonElement members, component->at(list));
  EIDER_TRY(const auto array, members.as<simdjson::dom::array>("an array"));
  for (const simdjson::dom::element member : array) {
    const JsonElement part{member, fmt::format("{}[{}]", members.place, parts.size())};
    EIDER_TRY(const auto part_type, part.string("type"));
    if (part_type == "Sequence") return error("{}: a Sequence within a Sequence", part.place);
    parts.push_back(part);
  }
  return parts;
}

Error unknown_component(const JsonElement& part, std::string_view known) {
  const auto type = part.string("type");
  return error("{}: type {} is not supported; known are {}", part.place,
               type.ok() ? printable(*type) : "(none)", known);
}

Result<ComponentPattern> component_pattern(const JsonElement& part) {
  EIDER_TRY(const JsonElement pattern, part.at("pattern"));
  ComponentPattern result;
  if (const auto regex = pattern.find("Regex")) {
    EIDER_TRY(result.text, translate_pattern(*regex));
    result.is_regex = true;
    return result;
  }
  EIDER_TRY(const JsonElement plain, pattern.at("String"));
  EIDER_TRY(result.text, plain.string());
  if (result.text.empty()) return error("{}: an empty pattern", plain.place);
  return result;
}

Result<std::string> plain_component_pattern(const JsonElement& part) {
  EIDER_TRY(ComponentPattern pattern, component_pattern(part));
  if (pattern.is_regex) return error("{}.pattern: only plain text is supported here", part.place);
  return std::move(pattern.text);
}

Result<SpaceRule> read_metaspace(const JsonElement& part) {
  SpaceRule rule;
  EIDER_TRY(rule.space, part.string("replacement"));
  if (rule.space != kSentencePieceSpace)
    return error("{}.replacement: {} is not supported; U+2581 is", part.place, printable(rule.space));
  EIDER_TRY(const bool prefix, part.flag("add_prefix_space", true));
  EIDER_TRY(const auto scheme, part.string("prepend_scheme"));
  if (scheme == "never" || !prefix) {
    rule.prefix = SpaceRule::Prefix::kNever;
  } else if (scheme == "first") {
    rule.prefix = SpaceRule::Prefix::kFirst;
  } else if (scheme != "always" && !scheme.empty()) {
    return error("{}.prepend_scheme: {} is not supported; known are always, first, never", part.place,
                 printable(scheme));
  }
  return rule;
}

}  // namespace eider
