#include "text/special_tokens.h"

#include <utf8proc.h>

#include <algorithm>
#include <string>

#include "text/utf8.h"

namespace eider {

namespace {

bool is_special(TokenType type) {
  return type == TokenType::kUserDefined || type == TokenType::kControl || type == TokenType::kUnknown;
}

std::unordered_map<TokenId, AddedTokenRule> rules_by_id(const Vocabulary& vocabulary) {
  std::unordered_map<TokenId, AddedTokenRule> rules;
  for (const AddedTokenRule& rule : vocabulary.added_token_rules) rules.emplace(rule.id, rule);
  return rules;
}

// What \w means in regular expressions: letters, marks, decimal digits, connectors and joiners.
bool is_word_character(char32_t code_point) {
  constexpr char32_t kNonJoiner = 0x200C, kJoiner = 0x200D;
  if (code_point == kNonJoiner || code_point == kJoiner) return true;
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(code_point))) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_PC:
      return true;
    default:
      return false;
  }
}

bool stands_alone(std::string_view before, std::string_view behind) {
  return (before.empty() || !is_word_character(last_utf8(before).code_point)) &&
         (behind.empty() || !is_word_character(first_utf8(behind).code_point));
}

std::size_t white_space_at_end(std::string_view text) {
  std::size_t size = 0;
  while (size < text.size()) {
    const Utf8Character character = last_utf8(text.substr(0, text.size() - size));
    if (!is_white_space(character.code_point)) break;
    size += character.length;
  }
  return size;
}

std::size_t white_space_at_start(std::string_view text) {
  std::size_t size = 0;
  while (size < text.size()) {
    const Utf8Character character = first_utf8(text.substr(size));
    if (!is_white_space(character.code_point)) break;
    size += character.length;
  }
  return size;
}

}  // namespace

SpecialTokens SpecialTokens::of_text(const Vocabulary& vocabulary) {
  SpecialTokens result;
  result.rules_ = rules_by_id(vocabulary);
  for (std::size_t i = 0; i < vocabulary.types.size(); ++i) {
    const auto id = static_cast<TokenId>(i);
    const auto rule = result.rules_.find(id);
    if (!is_special(vocabulary.types[i]) || (rule != result.rules_.end() && rule->second.normalized))
      continue;
    result.add(vocabulary.tokens[i], id, vocabulary.types[i]);
  }
  return result;
}

SpecialTokens SpecialTokens::of_normalized_text(const Vocabulary& vocabulary, const Normalizer& normalizer) {
  SpecialTokens result;
  result.rules_ = rules_by_id(vocabulary);
  std::string storage;
  for (const AddedTokenRule& rule : vocabulary.added_token_rules) {
    if (!rule.normalized || !is_special(vocabulary.type(rule.id))) continue;
    const std::string& token = vocabulary.tokens[static_cast<std::size_t>(rule.id)];
    result.add(normalizer.apply(token, storage), rule.id, vocabulary.type(rule.id));
  }
  return result;
}

void SpecialTokens::add(std::string_view spelling, TokenId id, TokenType type) {
  if (spelling.empty()) return;
  begins_token_[static_cast<std::uint8_t>(spelling[0])] = true;
  const ByteTrie::Node node = trie_.add(spelling);
  endings_.resize(trie_.node_count());
  // Of several tokens with one text the first id stands for it.
  TokenId& slot = type == TokenType::kUserDefined ? endings_[node].user_defined : endings_[node].special;
  if (slot < 0) slot = id;
}

std::optional<SpecialTokens::Match> SpecialTokens::find(std::string_view text, std::size_t from,
                                                        bool parse_special) const {
  for (std::size_t begin = from; begin < text.size(); ++begin) {
    if (!begins_token_[static_cast<std::uint8_t>(text[begin])]) continue;
    std::optional<Match> match = longest_at(text, begin, parse_special);
    if (!match) continue;
    const auto rule = rules_.find(match->id);
    if (rule == rules_.end()) return match;
    const std::string_view behind = text.substr(begin + match->size);
    if (rule->second.single_word && !stands_alone(text.substr(0, begin), behind)) {
      begin += match->size - 1;  // what it covers is not looked at again
      continue;
    }
    if (rule->second.lstrip) match->begin -= white_space_at_end(text.substr(from, begin - from));
    match->size += begin - match->begin;
    if (rule->second.rstrip) match->size += white_space_at_start(behind);
    return match;
  }
  return std::nullopt;
}

std::optional<SpecialTokens::Match> SpecialTokens::longest_at(std::string_view text, std::size_t begin,
                                                              bool parse_special) const {
  std::optional<Match> longest;
  ByteTrie::Node node = ByteTrie::kRoot;
  for (std::size_t end = begin; end < text.size(); ++end) {
    const auto next = trie_.next(node, text[end]);
    if (!next) break;
    node = *next;
    const Ending& here = endings_[node];
    const TokenId id = here.user_defined < 0 && parse_special ? here.special : here.user_defined;
    if (id >= 0) longest = Match{begin, end + 1 - begin, id};
  }
  return longest;
}

}  // namespace eider
