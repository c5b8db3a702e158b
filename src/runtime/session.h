// Session: one timeline of tokens and the KV blocks that hold its state. It knows nothing of sampling or text.
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
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;

  /// Tokens whose keys and values are stored: position i holds tokens()[i].
  std::span<const TokenId> tokens() const { return tokens_; }
  std::int64_t length() const { return static_cast<std::int64_t>(tokens_.size()); }
  std::int64_t max_context() const { return max_context_; }

  /// Makes sure that blocks exist for `count` more tokens. Fails, changing nothing, where the context would overflow:
  /// one line with advice.
  Status reserve(std::int64_t count);
  /// Records tokens that a step has stored, and gives back sliding-window blocks that nothing can see any more.
  void append(std::span<const TokenId> tokens);

  /// Remembers the current length as a place to return to: window layers keep the blocks that a continuation from here
  /// can see. Replaces the last such place.
  void mark_prompt_end();
  /// Shortens to the longest length <= `length` from which a continuation has all it needs, and returns it: `length`
  /// itself for models without windows; else `length` if its window's blocks are still here, the marked prompt end, or 0.
  std::int64_t rewind(std::int64_t length);

  /// What a step reads. Valid until the next reserve(), append() or rewind().
  SequenceBlocks blocks() const;

 private:
  KvPool* pool_;
  std::int64_t max_context_;
  std::int64_t prompt_end_ = 0;
  std::vector<TokenId> tokens_;
  std::vector<std::vector<std::byte*>> tables_;  // [kind][position / 128], null where given back
};

}  // namespace eider
