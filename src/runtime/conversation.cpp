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

/// How many cuts lie in the text that `rendering` begins with too.
std::size_t Conversation::cuts_kept(std::string_view rendering) const {
  const auto [differs, unused] = std::ranges::mismatch(text_, rendering);
  const auto common = static_cast<std::size_t>(differs - text_.begin());
  std::size_t kept = cuts_.size();
  while (kept > 0 && cuts_[kept - 1].text_end > common) --kept;
  return kept;
}

std::size_t Conversation::kept_text(std::string_view rendering) const {
  const std::size_t kept = cuts_kept(rendering);
  return kept == 0 ? 0 : cuts_[kept - 1].text_end;
}

void Conversation::set_prompt(const Tokenizer& tokenizer, std::string_view rendering) {
  cuts_.resize(cuts_kept(rendering));
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

void Conversation::append_answer(const Tokenizer& tokenizer, std::span<const TokenId> ids,
                                 std::string_view text) {
  const bool ended = tokenizer.ends_turn(ids.back());
  append(ids.first(ids.size() - (ended ? 1 : 0)), text);
  if (ended) append(ids.last(1), tokenizer.piece(ids.back()));
}

std::int64_t keep_common_prefix(Session& session, std::span<const TokenId> prompt) {
  EIDER_CHECK(!prompt.empty());
  const std::span<const TokenId> held = session.tokens();
  const auto [differs, unused] = std::ranges::mismatch(held, prompt.first(prompt.size() - 1));
  return session.rewind(differs - held.begin());
}

}  // namespace eider
