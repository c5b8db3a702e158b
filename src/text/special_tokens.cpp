#include "text/special_tokens.h"

namespace eider {

SpecialTokens::SpecialTokens(const Vocabulary& vocabulary) : nodes_(1) {
  for (std::size_t i = 0; i < vocabulary.types.size(); ++i) {
    const TokenType type = vocabulary.types[i];
    const bool user_defined = type == TokenType::kUserDefined;
    if (user_defined || type == TokenType::kControl || type == TokenType::kUnknown) {
      add(vocabulary.tokens[i], static_cast<TokenId>(i), user_defined);
    }
  }
}

void SpecialTokens::add(std::string_view text, TokenId id, bool user_defined) {
  if (text.empty()) return;
  begins_token_[static_cast<std::uint8_t>(text[0])] = true;
  std::uint32_t node = 0;
  for (const char byte : text) {
    const auto [found, added] =
        edges_.try_emplace(edge(node, byte), static_cast<std::uint32_t>(nodes_.size()));
    if (added) nodes_.emplace_back();
    node = found->second;
  }
  // Of several tokens with one text the first id stands for it.
  TokenId& slot = user_defined ? nodes_[node].user_defined : nodes_[node].special;
  if (slot < 0) slot = id;
}

std::optional<SpecialTokens::Match> SpecialTokens::find(std::string_view text, std::size_t from,
                                                        bool parse_special) const {
  for (std::size_t begin = from; begin < text.size(); ++begin) {
    if (!begins_token_[static_cast<std::uint8_t>(text[begin])]) continue;
    if (const auto match = longest_at(text, begin, parse_special)) return match;
  }
  return std::nullopt;
}

std::optional<SpecialTokens::Match> SpecialTokens::longest_at(std::string_view text, std::size_t begin,
                                                              bool parse_special) const {
  std::optional<Match> longest;
  std::uint32_t node = 0;
  for (std::size_t end = begin; end < text.size(); ++end) {
    const auto next = edges_.find(edge(node, text[end]));
    if (next == edges_.end()) break;
    node = next->second;
    const Node& here = nodes_[node];
    const TokenId id = here.user_defined < 0 && parse_special ? here.special : here.user_defined;
    if (id >= 0) longest = Match{begin, end + 1 - begin, id};
  }
  return longest;
}

}  // namespace eider
