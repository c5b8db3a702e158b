// Dialogue: the messages of a chat, and the session that answers the last one at the cost of what is new. Its
// users are the chat loop and its commands; it reads no keys and prints nothing.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "runtime/conversation.h"
#include "runtime/engine.h"
#include "runtime/generation.h"
#include "text/tokenizer.h"
#include "tools/chat_prompt.h"

namespace eider {

struct ChatMessage {
  std::string role;  ///< "system" (only the first), "user", "assistant"
  std::string content;
  std::vector<TokenId> ids;  ///< as generated; empty for what people wrote
};

/// What one answer took.
struct Turn {
  std::int64_t number = 0;         ///< of the user's message, from 1
  std::int64_t prompt_tokens = 0;  ///< the whole conversation's
  std::int64_t kept = 0;           ///< of these, held by the session already
  std::int64_t prefilled = 0;      ///< of these, computed for this answer
  std::int64_t generated = 0;
  std::int64_t context_used = 0;  ///< after the answer
  FinishReason finish_reason = FinishReason::kStop;
  bool context_full =
      false;  ///< the answer, or already the prompt (then generated = 0), met the context's end
  Generation::Timing timing;
};

class Dialogue {
 public:
  /// References must outlive the dialogue.
  Dialogue(Engine& engine, const Tokenizer& tokenizer, ChatPrompt prompt);

  const std::vector<ChatMessage>& messages() const { return messages_; }
  std::int64_t max_context() const { return session_.max_context(); }
  bool awaits_answer() const { return !messages_.empty() && messages_.back().role == "user"; }
  /// The last message of the user, if there is one.
  std::optional<std::string> last_question() const;

  void set_system(std::optional<std::string> text);
  /// Adds a message of the user, in place of one that still awaits its answer.
  void ask(std::string text);
  /// Takes the last answer away, so that its question awaits one again. False where there is no question.
  bool forget_answer();
  /// Forgets the oldest question and its answer; the last question stays. False where it is the only one.
  bool drop_oldest_turn();
  /// Forgets everything but the system message.
  void reset();
  /// Takes over messages that were saved: at most one system message, then user and assistant by turns.
  /// Returns how many answers' ids do not spell their text (another model made them) and were dropped. Fails,
  /// changing nothing.
  Result<int> restore(std::vector<ChatMessage> messages);

  /// The prompt of the next answer in the words of the chat template.
  Result<std::string> render() const;

  using Run = std::function<Result<std::string>(Generation&)>;
  /// Answers the last message, which awaits_answer(). `run` advances the generation to its end and returns
  /// its text. Where the prompt does not fit the context, nothing is run and nothing changes.
  Result<Turn> answer(Sampler sampler, GenerationLimits limits, const Run& run);

 private:
  Result<std::string> render(std::size_t messages) const;
  bool are_known(std::span<const TokenId> ids) const;
  std::string spelled(std::span<const TokenId> ids) const;

  Engine* engine_;
  const Tokenizer* tokenizer_;
  ChatPrompt prompt_;
  Session session_;
  Conversation conversation_;
  std::vector<ChatMessage> messages_;
};

}  // namespace eider
