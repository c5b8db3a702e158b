#include "tools/chat_dialogue.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "text/detokenizer.h"

namespace eider {
namespace {

bool has_system(const std::vector<ChatMessage>& messages) {
  return !messages.empty() && messages.front().role == "system";
}

// After at most one system message, user and assistant by turns.
Status check_roles(const std::vector<ChatMessage>& messages) {
  const std::size_t first = has_system(messages) ? 1 : 0;
  for (std::size_t i = first; i < messages.size(); ++i) {
    const char* expected = (i - first) % 2 == 0 ? "user" : "assistant";
    if (messages[i].role != expected)
      return error("message {} is of role '{}', expected '{}'", i + 1, messages[i].role, expected);
  }
  return {};
}

}  // namespace

Dialogue::Dialogue(Engine& engine, const Tokenizer& tokenizer, ChatPrompt prompt)
    : engine_(&engine), tokenizer_(&tokenizer), prompt_(std::move(prompt)), session_(engine.new_session()) {}

std::optional<std::string> Dialogue::last_question() const {
  const auto last = std::find_if(messages_.rbegin(), messages_.rend(),
                                 [](const ChatMessage& message) { return message.role == "user"; });
  if (last == messages_.rend()) return std::nullopt;
  return last->content;
}

void Dialogue::set_system(std::optional<std::string> text) {
  if (has_system(messages_)) messages_.erase(messages_.begin());
  if (text) messages_.insert(messages_.begin(), {"system", std::move(*text), {}});
}

void Dialogue::ask(std::string text) {
  if (awaits_answer()) messages_.pop_back();
  messages_.push_back({"user", std::move(text), {}});
}

bool Dialogue::forget_answer() {
  if (!messages_.empty() && messages_.back().role == "assistant") messages_.pop_back();
  return awaits_answer();
}

bool Dialogue::drop_oldest_turn() {
  const auto first = messages_.begin() + (has_system(messages_) ? 1 : 0);
  if (messages_.end() - first <= 2) return false;
  messages_.erase(first, first + 2);
  return true;
}

void Dialogue::reset() {
  messages_.resize(has_system(messages_) ? 1 : 0);
}

Result<int> Dialogue::restore(std::vector<ChatMessage> messages) {
  EIDER_TRY_STATUS(check_roles(messages));
  int foreign = 0;
  for (ChatMessage& message : messages) {
    if (message.ids.empty() || (are_known(message.ids) && spelled(message.ids) == message.content)) continue;
    message.ids.clear();
    ++foreign;
  }
  std::swap(messages_, messages);
  conversation_ = Conversation();
  for (std::size_t i = 0; i < messages_.size(); ++i) {
    if (messages_[i].ids.empty()) continue;
    const Result<std::string> prompt = render(i);
    if (!prompt.ok()) {
      std::swap(messages_, messages);
      return prompt.error();
    }
    conversation_.set_prompt(*tokenizer_, *prompt);
    conversation_.append_answer(*tokenizer_, messages_[i].ids, messages_[i].content);
  }
  return foreign;
}

Result<std::string> Dialogue::render() const {
  return render(messages_.size());
}

// The first `count` messages.
Result<std::string> Dialogue::render(std::size_t count) const {
  auto messages = nlohmann::ordered_json::array();
  for (const ChatMessage& message : std::span(messages_).first(count))
    messages.push_back({{"role", message.role}, {"content", message.content}});
  return prompt_.render({{"messages", std::move(messages)}});
}

Result<Turn> Dialogue::answer(Sampler sampler, GenerationLimits limits, const Run& run) {
  EIDER_CHECK(awaits_answer());
  EIDER_TRY(const std::string rendering, render());
  Conversation conversation = conversation_;
  conversation.set_prompt(*tokenizer_, rendering);
  const std::span<const TokenId> prompt = conversation.ids();
  if (prompt.empty()) return error("the chat template made an empty prompt");

  Turn turn;
  turn.number = std::ranges::count(messages_, "user", &ChatMessage::role);
  turn.prompt_tokens = static_cast<std::int64_t>(prompt.size());
  turn.context_used = session_.length();
  turn.context_full = turn.prompt_tokens > session_.max_context();
  if (turn.context_full) return turn;

  turn.kept = keep_common_prefix(session_, prompt);
  const std::span<const TokenId> rest = prompt.subspan(static_cast<std::size_t>(turn.kept));
  EIDER_TRY(Generation generation, Generation::start(*engine_, session_, *tokenizer_, std::move(sampler),
                                                     {rest.begin(), rest.end()}, std::move(limits)));
  conversation_ = std::move(conversation);
  EIDER_TRY(std::string text, run(generation));

  turn.prefilled = generation.prefilled();
  turn.generated = static_cast<std::int64_t>(generation.ids().size());
  turn.context_used = session_.length();
  turn.finish_reason = generation.finish_reason();
  turn.context_full = turn.finish_reason == FinishReason::kLength && !session_.check_room(1).ok();
  turn.timing = generation.timing();
  if (turn.generated > 0) {
    conversation_.append_answer(*tokenizer_, generation.ids(), text);
    messages_.push_back({"assistant", std::move(text), {generation.ids().begin(), generation.ids().end()}});
  }
  return turn;
}

bool Dialogue::are_known(std::span<const TokenId> ids) const {
  return std::ranges::all_of(ids, [&](TokenId id) { return id >= 0 && id < engine_->model().vocab_size; });
}

std::string Dialogue::spelled(std::span<const TokenId> ids) const {
  Detokenizer detokenizer(*tokenizer_, false);
  std::string text;
  for (const TokenId id : ids) {
    if (!tokenizer_->ends_turn(id)) text += detokenizer.push(id);
  }
  return text + detokenizer.finish();
}

}  // namespace eider
