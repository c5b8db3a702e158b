// The pre-tokenizer of a tokenizer.json.
#include <vector>

#include "weights/printable.h"
#include "weights/tokenizer_component.h"

namespace eider {
namespace {

/// `text` as a regular expression that matches it and nothing else.
std::string quote_pattern(std::string_view text) {
  std::string quoted;
  for (const char c : text) {
    if (std::string_view(R"(\^$.|?*+()[]{}#-)").find(c) != std::string_view::npos) quoted.push_back('\\');
    quoted.push_back(c);
  }
  return quoted;
}

Result<SplitRule::Match> read_behavior(const JsonElement& part) {
  using Match = SplitRule::Match;
  EIDER_TRY(const auto behavior, part.string("behavior"));
  EIDER_TRY(const bool invert, part.flag("invert", false));
  if (behavior == "Isolated") return Match::kIsolated;
  if (behavior == "Removed") return invert ? Match::kKept : Match::kRemoved;
  if (behavior == "MergedWithPrevious" && !invert) return Match::kWithPrevious;
  if (behavior == "MergedWithNext" && !invert) return Match::kWithNext;
  return error("{}: behavior {}{} is not supported", part.place, printable(behavior),
               invert ? " with invert" : "");
}

Result<SplitRule> read_split(const JsonElement& part) {
  EIDER_TRY(ComponentPattern pattern, component_pattern(part));
  EIDER_TRY(const auto match, read_behavior(part));
  return SplitRule{pattern.is_regex ? std::move(pattern.text) : quote_pattern(pattern.text), match};
}

/// Adds the prefix and the pattern that ByteLevel implies.
Status read_byte_level(const JsonElement& part, std::vector<PieceRule>& rules) {
  EIDER_TRY(const bool prefix, part.flag("add_prefix_space", true));
  if (prefix) rules.emplace_back(SpaceRule{.space = " "});
  EIDER_TRY(const bool use_regex, part.flag("use_regex", true));
  if (use_regex)
    rules.emplace_back(SplitRule{
        .pattern = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)"});
  return {};
}

Status read_metaspace_rules(const JsonElement& part, std::vector<PieceRule>& rules) {
  EIDER_TRY(SpaceRule spaces, read_metaspace(part));
  EIDER_TRY(const bool split, part.flag("split", true));
  SplitRule words{.pattern = spaces.space, .match = SplitRule::Match::kWithNext};
  rules.emplace_back(std::move(spaces));
  if (split) rules.emplace_back(std::move(words));
  return {};
}

}  // namespace

Status read_pre_tokenizer(const JsonElement& root, Vocabulary& vocabulary) {
  std::vector<PieceRule>& rules = vocabulary.piece_rules.emplace();
  EIDER_TRY(const auto parts, component_parts(root.find("pre_tokenizer"), "pretokenizers"));
  for (const JsonElement& part : parts) {
    EIDER_TRY(const auto type, part.string("type"));
    if (vocabulary.model == "gpt2") return error("{}: nothing may follow ByteLevel", part.place);
    if (type == "Split") {
      EIDER_TRY(SplitRule rule, read_split(part));
      rules.emplace_back(std::move(rule));
    } else if (type == "Digits") {
      EIDER_TRY(const bool individual, part.flag("individual_digits", false));
      rules.emplace_back(SplitRule{.pattern = individual ? R"(\p{N})" : R"(\p{N}+)"});
    } else if (type == "WhitespaceSplit") {
      rules.emplace_back(SplitRule{.pattern = R"(\s+)", .match = SplitRule::Match::kRemoved});
    } else if (type == "Metaspace") {
      EIDER_TRY_STATUS(read_metaspace_rules(part, rules));
    } else if (type == "ByteLevel" && vocabulary.model == "bpe") {
      EIDER_TRY_STATUS(read_byte_level(part, rules));
      vocabulary.model = "gpt2";
    } else if (type == "ByteLevel") {
      return error("{}: ByteLevel is supported for BPE only", part.place);
    } else {
      return unknown_component(part, "Split, Digits, WhitespaceSplit, Metaspace, ByteLevel");
    }
  }
  return {};
}

}  // namespace eider
