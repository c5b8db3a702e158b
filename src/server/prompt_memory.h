// PromptMemory: the tokens of conversations that were answered lately. Clients send a conversation's text
// back with each turn; the ids that were generated for it are found here, so that they are not tokenised
// again, which could give others that no session has computed.
#pragma once

#include <cstddef>
#include <list>
#include <mutex>
#include <string>
#include <string_view>

#include "runtime/conversation.h"
#include "text/tokenizer.h"

namespace eider::server {

/// May be used from any thread.
class PromptMemory {
 public:
  explicit PromptMemory(std::size_t most_conversations = 256, std::size_t most_bytes = std::size_t{64} << 20)
      : most_conversations_(most_conversations), most_bytes_(most_bytes) {}

  /// The conversation that stands for `rendering`, going on from the one of `scope` that shares most with it.
  Conversation find(const std::string& scope, const Tokenizer& tokenizer, std::string_view rendering);
  /// Keeps a conversation with its answer; those used least recently go first.
  void keep(const std::string& scope, Conversation conversation);

 private:
  struct Entry {
    std::string scope;
    Conversation conversation;
    std::size_t bytes() const;
  };

  std::size_t most_conversations_, most_bytes_;
  std::mutex mutex_;
  std::size_t bytes_ = 0;
  std::list<Entry> entries_;  // the one used last first
};

}  // namespace eider::server
