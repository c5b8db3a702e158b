#include "text/vocabulary.h"

#include <charconv>
#include <string_view>

namespace eider {

TokenType Vocabulary::type(TokenId id) const {
  return types.empty() ? TokenType::kNormal : types[static_cast<std::size_t>(id)];
}

std::optional<std::uint8_t> Vocabulary::byte(TokenId id) const {
  // "<0x0A>"
  const std::string_view text = tokens[static_cast<std::size_t>(id)];
  if (text.size() != 6 || !text.starts_with("<0x") || !text.ends_with('>')) return std::nullopt;
  std::uint8_t value = 0;
  const char* end = text.data() + 5;
  const auto [stop, problem] = std::from_chars(text.data() + 3, end, value, 16);
  if (problem != std::errc() || stop != end) return std::nullopt;
  return value;
}

Status Vocabulary::check() const {
  const std::size_t count = tokens.size();
  if (count == 0) return error("the vocabulary has no tokens");
  if (!types.empty() && types.size() != count)
    return error("{} token types for {} tokens", types.size(), count);
  if (!scores.empty() && scores.size() != count)
    return error("{} scores for {} tokens", scores.size(), count);
  const auto check_id = [&](const char* name, TokenId id) -> Status {
    if (contains(id)) return {};
    return error("{} token id {} is not below the {} tokens", name, id, count);
  };
  const std::pair<const char*, std::optional<TokenId>> named[] = {
      {"bos", bos}, {"eos", eos}, {"eot", eot}, {"eom", eom}, {"unknown", unknown}, {"padding", padding}};
  for (const auto& [name, id] : named) {
    if (id) EIDER_TRY_STATUS(check_id(name, *id));
  }
  for (const TokenId id : more_eos) EIDER_TRY_STATUS(check_id("eos", id));
  for (const AddedTokenRule& rule : added_token_rules) EIDER_TRY_STATUS(check_id("added", rule.id));
  for (const Merge& merge : merge_ids) {
    for (const TokenId id : {merge.left, merge.right, merge.joined}) EIDER_TRY_STATUS(check_id("merged", id));
  }
  return check_special_tokens();
}

Status Vocabulary::check_special_tokens() const {
  constexpr std::size_t kLongest = 1024, kMostInAll = std::size_t{16} << 20;  // bytes
  std::size_t in_all = 0;
  for (std::size_t i = 0; i < types.size(); ++i) {
    if (types[i] != TokenType::kControl && types[i] != TokenType::kUserDefined) continue;
    in_all += tokens[i].size();
    if (tokens[i].size() > kLongest || in_all > kMostInAll)
      return error("special token {} has {} bytes; at most {}, and {} in all, are sensible", i,
                   tokens[i].size(), kLongest, kMostInAll);
  }
  return {};
}

}  // namespace eider
