#include "server/prompt_memory.h"

#include <utility>

namespace eider::server {

std::size_t PromptMemory::Entry::bytes() const {
  return sizeof(Entry) + scope.size() + conversation.text().size() + conversation.ids().size_bytes();
}

Conversation PromptMemory::find(const std::string& scope, const Tokenizer& tokenizer,
                                std::string_view rendering) {
  Conversation conversation;
  {
    const std::lock_guard lock(mutex_);
    auto best = entries_.end();
    std::size_t most = 0;
    for (auto entry = entries_.begin(); entry != entries_.end(); ++entry) {
      if (entry->scope != scope) continue;
      const std::size_t kept = entry->conversation.kept_text(rendering);
      if (kept <= most) continue;
      most = kept;
      best = entry;
    }
    if (best != entries_.end()) {
      conversation = best->conversation;
      entries_.splice(entries_.begin(), entries_, best);
    }
  }
  conversation.set_prompt(tokenizer, rendering);
  return conversation;
}

void PromptMemory::keep(const std::string& scope, Conversation conversation) {
  const std::lock_guard lock(mutex_);
  entries_.push_front({scope, std::move(conversation)});
  bytes_ += entries_.front().bytes();
  while (entries_.size() > most_conversations_ || (bytes_ > most_bytes_ && !entries_.empty())) {
    bytes_ -= entries_.back().bytes();
    entries_.pop_back();
  }
}

}  // namespace eider::server
