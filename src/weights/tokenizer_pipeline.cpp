#include "weights/tokenizer_pipeline.h"

#include <algorithm>
#include <array>
#include <vector>

#include "text/sentencepiece_bpe.h"
#include "weights/printable.h"

namespace eider {
namespace {

/// The parts of a component that may be a Sequence of several, in order; none where it is absent.
Result<std::vector<JsonElement>> flatten(const std::optional<JsonElement>& component, std::string_view list) {
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

Error unknown_type(const JsonElement& part, std::string_view known) {
  const auto type = part.string("type");
  return error("{}: type {} is not supported; known are {}", part.place,
               type.ok() ? printable(*type) : "(none)", known);
}

/// The member `pattern` of a Split or Replace that must be plain text.
Result<std::string> plain_pattern(const JsonElement& part) {
  EIDER_TRY(const JsonElement pattern, part.at("pattern"));
  EIDER_TRY(const JsonElement plain, pattern.at("String"));
  EIDER_TRY(const auto text, plain.string());
  if (text.empty()) return error("{}: an empty pattern", plain.place);
  return std::string(text);
}

Status read_normalizer(const JsonElement& root, Vocabulary& vocabulary) {
  EIDER_TRY(const auto parts, flatten(root.find("normalizer"), "normalizers"));
  for (const JsonElement& part : parts) {
    EIDER_TRY(const auto type, part.string("type"));
    NormalizerStep step;
    if (type == "NFC") {
      step.kind = NormalizerStep::Kind::kNfc;
    } else if (type == "Prepend") {
      step.kind = NormalizerStep::Kind::kPrepend;
      EIDER_TRY(step.content, part.string("prepend"));
    } else if (type == "Replace") {
      step.kind = NormalizerStep::Kind::kReplace;
      EIDER_TRY(step.pattern, plain_pattern(part));
      EIDER_TRY(step.content, part.string("content"));
    } else {
      return unknown_type(part, "NFC, Prepend, Replace");
    }
    vocabulary.normalizer.push_back(std::move(step));
  }
  return {};
}

/// `text` as a regular expression that matches it and nothing else.
std::string quote_pattern(std::string_view text) {
  std::string quoted;
  for (const char c : text) {
    if (std::string_view(R"(\^$.|?*+()[]{}#-)").find(c) != std::string_view::npos) quoted.push_back('\\');
    quoted.push_back(c);
  }
  return quoted;
}

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

Result<SplitRule> read_split(const JsonElement& part) {
  SplitRule rule;
  EIDER_TRY(const JsonElement pattern, part.at("pattern"));
  if (const auto regex = pattern.find("Regex")) {
    EIDER_TRY(rule.pattern, translate_pattern(*regex));
  } else {
    EIDER_TRY(const std::string text, plain_pattern(part));
    rule.pattern = quote_pattern(text);
  }
  EIDER_TRY(const auto behavior, part.string("behavior"));
  EIDER_TRY(const bool invert, part.flag("invert", false));
  if (behavior == "Isolated" || (behavior == "Removed" && invert)) {
    // The second keeps the matches and drops the rest, of which patterns written for it leave none.
    rule.match = SplitRule::Match::kIsolated;
  } else if (behavior == "MergedWithPrevious" && !invert) {
    rule.match = SplitRule::Match::kWithPrevious;
  } else if (behavior == "MergedWithNext" && !invert) {
    rule.match = SplitRule::Match::kWithNext;
  } else {
    return error("{}: behavior {}{} is not supported", part.place, printable(behavior),
                 invert ? " with invert" : "");
  }
  return rule;
}

/// Whether a ByteLevel pre-tokenizer ends the list; adds the pattern that it implies.
Status read_byte_level(const JsonElement& part, std::vector<SplitRule>& rules) {
  EIDER_TRY(const bool prefix, part.flag("add_prefix_space", true));
  if (prefix) return error("{}: add_prefix_space is not supported", part.place);
  EIDER_TRY(const bool use_regex, part.flag("use_regex", true));
  if (use_regex)
    rules.push_back(
        {.pattern = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)"});
  return {};
}

Status read_pre_tokenizer(const JsonElement& root, Vocabulary& vocabulary) {
  std::vector<SplitRule>& rules = vocabulary.split_rules.emplace();
  vocabulary.model = "bpe";
  EIDER_TRY(const auto parts, flatten(root.find("pre_tokenizer"), "pretokenizers"));
  for (const JsonElement& part : parts) {
    EIDER_TRY(const auto type, part.string("type"));
    if (vocabulary.model == "gpt2") return error("{}: nothing may follow ByteLevel", part.place);
    if (type == "Split") {
      EIDER_TRY(SplitRule rule, read_split(part));
      rules.push_back(std::move(rule));
    } else if (type == "Digits") {
      EIDER_TRY(const bool individual, part.flag("individual_digits", false));
      rules.push_back({.pattern = individual ? R"(\p{N})" : R"(\p{N}+)"});
    } else if (type == "ByteLevel") {
      EIDER_TRY_STATUS(read_byte_level(part, rules));
      vocabulary.model = "gpt2";
    } else {
      return unknown_type(part, "Split, Digits, ByteLevel");
    }
  }
  return {};
}

/// The decoders of a character-level tokenizer: spaces back from U+2581, bytes from byte tokens, and perhaps
/// one space less at the start.
Status read_character_decoder(const std::vector<JsonElement>& parts, Vocabulary& vocabulary) {
  for (const JsonElement& part : parts) {
    EIDER_TRY(const auto type, part.string("type"));
    if (type == "Replace") {
      EIDER_TRY(const std::string pattern, plain_pattern(part));
      EIDER_TRY(const auto content, part.string("content"));
      if (pattern != kSentencePieceSpace || content != " ")
        return error("{}: only U+2581 can be replaced, by a space", part.place);
    } else if (type == "Strip") {
      EIDER_TRY(const auto content, part.string("content"));
      const auto start = part.find("start"), stop = part.find("stop");
      const bool one_space = start && stop && content == " " && start->integer().ok() &&
                             *start->integer() == 1 && stop->integer().ok() && *stop->integer() == 0;
      if (!one_space) return error("{}: only one space at the start can be stripped", part.place);
      vocabulary.strip_leading_space = true;
    } else if (type != "ByteFallback" && type != "Fuse") {
      return unknown_type(part, "Replace, ByteFallback, Fuse, Strip, ByteLevel");
    }
  }
  return {};
}

Status read_decoder(const JsonElement& root, Vocabulary& vocabulary) {
  EIDER_TRY(const auto parts, flatten(root.find("decoder"), "decoders"));
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

/// The id of the one token that a template's special token stands for.
Result<TokenId> template_token(const JsonElement& processor, const JsonElement& special,
                               const Vocabulary& vocabulary) {
  EIDER_TRY(const JsonElement name_element, special.at("id"));
  EIDER_TRY(const auto name, name_element.string());
  EIDER_TRY(const JsonElement tokens, processor.at("special_tokens"));
  EIDER_TRY(const JsonElement token, tokens.at(name));
  EIDER_TRY(const JsonElement ids_element, token.at("ids"));
  EIDER_TRY(const auto ids, ids_element.as<simdjson::dom::array>("an array"));
  std::int64_t id = -1;
  if (ids.size() != 1 || ids.at(0).get(id) != simdjson::SUCCESS || id < 0 ||
      static_cast<std::uint64_t>(id) >= vocabulary.tokens.size())
    return error("{}: expected the id of one token", ids_element.place);
  return static_cast<TokenId>(id);
}

/// At most one token before the text, which is BOS, and one behind it, which is EOS.
Status read_template(const JsonElement& processor, Vocabulary& vocabulary) {
  EIDER_TRY(const JsonElement single, processor.at("single"));
  EIDER_TRY(const auto items, single.as<simdjson::dom::array>("an array"));
  bool after_text = false;
  for (const simdjson::dom::element value : items) {
    const JsonElement item{value, single.place};
    const auto special = item.find("SpecialToken");
    if (!special) {
      if (!item.find("Sequence") || after_text) return error("{}: not a template of one text", single.place);
      after_text = true;
      continue;
    }
    EIDER_TRY(const TokenId id, template_token(processor, *special, vocabulary));
    bool& added = after_text ? vocabulary.add_eos : vocabulary.add_bos;
    if (added) return error("{}: more than one token on one side of the text", single.place);
    added = true;
    (after_text ? vocabulary.eos : vocabulary.bos) = id;
  }
  return {};
}

Status read_post_processor(const JsonElement& root, Vocabulary& vocabulary) {
  EIDER_TRY(const auto parts, flatten(root.find("post_processor"), "processors"));
  for (const JsonElement& part : parts) {
    EIDER_TRY(const auto type, part.string("type"));
    if (type == "TemplateProcessing") {
      EIDER_TRY_STATUS(read_template(part, vocabulary));
    } else if (type != "ByteLevel") {  // which only moves offsets
      return unknown_type(part, "TemplateProcessing, ByteLevel");
    }
  }
  return {};
}

}  // namespace

Status read_tokenizer_pipeline(const JsonElement& root, Vocabulary& vocabulary) {
  EIDER_TRY_STATUS(read_normalizer(root, vocabulary));
  EIDER_TRY_STATUS(read_pre_tokenizer(root, vocabulary));
  EIDER_TRY_STATUS(read_decoder(root, vocabulary));
  return read_post_processor(root, vocabulary);
}

}  // namespace eider
