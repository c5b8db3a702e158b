// Session: one timeline of tokens and the KV blocks that hold its state. It knows nothing of sampling or
// text.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "base/token_id.h"
#include "ops/step_state.h"
#include "runtime/kv_pool.h"

namespace eider {

class Session {
 public:
  /// `pool` must outlive the session. `max_context`: most tokens it may hold.
  Session(KvPool& pool, std::int64_t max_context);
  ~Session();
  Session(Session&& other) noexcept = default;
  Session& operator=(Session&& other) noexcept;

  /// Tokens whose keys and values are stored: position i holds tokens()[i].
  std::span<const TokenId> tokens() const { return tokens_; }
  std::int64_t length() const { return static_cast<std::int64_t>(tokens_.size()); }
  std::int64_t max_context() const { return max_context_; }

  /// Fails where `count` more tokens would overflow the context: one line with advice.
  Status check_room(std::int64_t count) const;
  /// Makes sure that blocks exist for `count` more tokens. Fails, changing nothing, as check_room() and
  /// KvPool::take() do.
  Status reserve(std::int64_t count);
  /// Records tokens that a step has stored, and gives back sliding-window blocks that neither the last token
  /// nor a later one can see.
  void append(std::span<const TokenId> tokens);

  /// Remembers the current length as a place to return to: window layers keep the blocks that a continuation
  /// from here can see, or from one token earlier (a new answer computes the prompt's last token again for
  /// its logits). Replaces the last such place.
  void mark_prompt_end();
  /// Shortens to the longest length <= `length` from which a continuation has all it needs, and returns it:
  /// `length` itself for models without windows, or while its windows' blocks are still here; else about the
  /// marked prompt end, or 0. `length` is at most length().
  std::int64_t rewind(std::int64_t length);

  /// What a step reads. Valid until the next reserve(), append() or rewind().
  SequenceBlocks blocks() const;

 private:
  using Table = std::vector<std::byte*>;

  void drop(int kind, std::int64_t block);
  void shrink_tables(std::int64_t length);
  void give_back_unseen(int kind);

  KvPool* pool_;
  std::int64_t max_context_;
  std::int64_t prompt_end_ = 0;
  std::vector<TokenId> tokens_;  // room for max_context
  std::vector<Table> tables_;    // [kind][position / 128], null where given back; room for max_context
};

}  // namespace eider
