#include "runtime/conversation.h"

#include <algorithm>

#include "base/check.h"

namespace eider {
namespace {

// Whether text after this token goes on in the same stretch of text, rather than after a special token.
bool is_text(const Vocabulary& vocabulary, TokenId id) {
  if (id < 0 || static_cast<std::size_t>(id) >= vocabulary.tokens.size()) return false;
  const TokenType type = vocabulary.type(id);
  return type == TokenType::kNormal || type == TokenType::kByte;
}

}  // namespace

void Conversation::set_prompt(const Tokenizer& tokenizer, std::string_view rendering) {
  const auto [differs, unused] = std::ranges::mismatch(text_, rendering);
  const auto common = static_cast<std::size_t>(differs - text_.begin());
  while (!cuts_.empty() && cuts_.back().text_end > common) cuts_.pop_back();
  const Cut kept = cuts_.empty() ? Cut{0, 0} : cuts_.back();
  text_.resize(kept.text_end);
  ids_.resize(kept.ids_end);

  EncodeOptions options;
  options.add_special = ids_.empty();
  options.continues_text = !ids_.empty() && is_text(tokenizer.vocabulary(), ids_.back());
  const std::string_view rest = rendering.substr(kept.text_end);
  append(tokenizer.encode(rest, options), rest);
}

void Conversation::append(std::span<const TokenId> ids, std::string_view text) {
  text_ += text;
  ids_.insert(ids_.end(), ids.begin(), ids.end());
  if (!text.empty()) cuts_.push_back({text_.size(), ids_.size()});  // ids without text stay with what follows
}

std::int64_t keep_common_prefix(Session& session, std::span<const TokenId> prompt) {
  EIDER_CHECK(!prompt.empty());
  const std::span<const TokenId> held = session.tokens();
  const auto [differs, unused] = std::ranges::mismatch(held, prompt.first(prompt.size() - 1));
  return session.rewind(differs - held.begin());
}

}  // namespace eider
