#include "server/json_mask.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "runtime/stop_strings.h"
#include "server/json_automaton.h"

namespace eider::server {

class JsonTokens {
 public:
  JsonTokens(const Tokenizer& tokenizer, std::int64_t vocab_size);

  std::string_view text(TokenId id) const { return text_[static_cast<std::size_t>(id)]; }
  /// Tokens with text by their first byte.
  const std::vector<TokenId>& beginning_with(unsigned char byte) const { return by_first_byte_[byte]; }
  /// Tokens that may follow inside of a string whatever their place, as a mask; and those with text that are
  /// not among them, which must be tried.
  const std::vector<std::uint64_t>& plain() const { return plain_; }
  const std::vector<TokenId>& not_plain() const { return not_plain_; }
  const std::vector<TokenId>& ending() const { return ending_; }
  std::size_t size() const { return text_.size(); }

 private:
  std::vector<std::string> text_;  // [vocabulary]; empty for tokens that end the turn
  std::array<std::vector<TokenId>, 256> by_first_byte_;
  std::vector<std::uint64_t> plain_;
  std::vector<TokenId> not_plain_, ending_;
};

namespace {

void allow(std::span<std::uint64_t> allowed, TokenId id) {
  const auto bit = static_cast<std::size_t>(id);
  allowed[bit / 64] |= std::uint64_t{1} << (bit % 64);
}

void forbid(std::span<std::uint64_t> allowed, TokenId id) {
  const auto bit = static_cast<std::size_t>(id);
  allowed[bit / 64] &= ~(std::uint64_t{1} << (bit % 64));
}

bool is_plain(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return static_cast<unsigned char>(c) >= 0x20 && c != '"' && c != '\\'; });
}

/// The mask of one answer: follows its tokens.
class JsonMask {
 public:
  JsonMask(std::shared_ptr<const JsonTokens> tokens, std::string wait_for)
      : tokens_(std::move(tokens)), wait_for_(std::move(wait_for)), waiting_(!wait_for_.empty()) {}

  void operator()(std::span<const TokenId> generated, std::span<std::uint64_t> allowed);

 private:
  void follow(TokenId id);
  void allow_while_waiting(std::span<std::uint64_t> allowed) const;
  void allow_next(std::span<std::uint64_t> allowed) const;
  void try_all(const std::vector<TokenId>& ids, std::span<std::uint64_t> allowed) const;

  std::shared_ptr<const JsonTokens> tokens_;
  std::string wait_for_;
  bool waiting_;
  std::string waited_;  // the tail of the text before the object
  JsonAutomaton automaton_;
  std::size_t followed_ = 0;  // of the generated ids
};

void JsonMask::operator()(std::span<const TokenId> generated, std::span<std::uint64_t> allowed) {
  if (generated.size() < followed_) *this = JsonMask(tokens_, wait_for_);  // the answer began anew
  for (; followed_ < generated.size(); ++followed_) follow(generated[followed_]);
  if (waiting_)
    allow_while_waiting(allowed);
  else
    allow_next(allowed);
}

void JsonMask::follow(TokenId id) {
  if (static_cast<std::size_t>(id) >= tokens_->size()) return;
  std::string_view text = tokens_->text(id);
  if (waiting_) {
    waited_ += text;
    const std::size_t end = waited_.find(wait_for_);
    if (end == std::string::npos) {
      waited_.erase(0, waited_.size() - std::min(waited_.size(), wait_for_.size()));
      return;
    }
    waiting_ = false;
    automaton_.take(std::string_view(waited_).substr(end + wait_for_.size()));
    return;
  }
  automaton_.take(text);
}

void JsonMask::allow_while_waiting(std::span<std::uint64_t> allowed) const {
  std::fill(allowed.begin(), allowed.end(), ~std::uint64_t{0});
  for (const TokenId id : tokens_->ending()) forbid(allowed, id);
  if (tail_that_begins(waited_, wait_for_) == 0) return;
  // The next token may end the wait: what it has behind that must begin the object.
  for (TokenId id = 0; static_cast<std::size_t>(id) < tokens_->size(); ++id) {
    const std::string text = waited_ + std::string(tokens_->text(id));
    const std::size_t end = text.find(wait_for_);
    if (end == std::string::npos) continue;
    if (JsonAutomaton next = automaton_; !next.take(std::string_view(text).substr(end + wait_for_.size())))
      forbid(allowed, id);
  }
}

void JsonMask::allow_next(std::span<std::uint64_t> allowed) const {
  if (automaton_.done()) {
    for (const TokenId id : tokens_->ending()) allow(allowed, id);
    return;
  }
  if (automaton_.in_string()) {
    std::ranges::copy(tokens_->plain(), allowed.begin());
    return try_all(tokens_->not_plain(), allowed);
  }
  for (int byte = 0; byte < 256; ++byte) {
    JsonAutomaton next = automaton_;
    if (next.take(static_cast<char>(byte)))
      try_all(tokens_->beginning_with(static_cast<unsigned char>(byte)), allowed);
  }
}

void JsonMask::try_all(const std::vector<TokenId>& ids, std::span<std::uint64_t> allowed) const {
  for (const TokenId id : ids) {
    JsonAutomaton next = automaton_;
    if (next.take(tokens_->text(id))) allow(allowed, id);
  }
}

}  // namespace

JsonTokens::JsonTokens(const Tokenizer& tokenizer, std::int64_t vocab_size) {
  const std::size_t count =
      std::min(tokenizer.vocabulary().tokens.size(), static_cast<std::size_t>(vocab_size));
  text_.resize(count);
  plain_.resize((count + 63) / 64);
  for (std::size_t i = 0; i < count; ++i) {
    const auto id = static_cast<TokenId>(i);
    if (tokenizer.ends_turn(id)) {
      ending_.push_back(id);
      continue;
    }
    text_[i] = tokenizer.bytes(id);
    if (text_[i].empty()) continue;
    by_first_byte_[static_cast<unsigned char>(text_[i].front())].push_back(id);
    if (is_plain(text_[i]))
      allow(plain_, id);
    else
      not_plain_.push_back(id);
  }
}

std::shared_ptr<const JsonTokens> make_json_tokens(const Tokenizer& tokenizer, std::int64_t vocab_size) {
  return std::make_shared<const JsonTokens>(tokenizer, vocab_size);
}

std::function<serving::TokenMask(std::int64_t choice)> make_json_mask(
    std::shared_ptr<const JsonTokens> tokens, const ThinkingFormat* thought) {
  return [tokens = std::move(tokens),
          wait = std::string(thought != nullptr ? thought->close : std::string_view())](
             std::int64_t /*choice*/) -> serving::TokenMask { return JsonMask(tokens, wait); };
}

}  // namespace eider::server
