// Session: one timeline of tokens and the KV blocks that hold its state. It knows nothing of sampling or
// text.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/function_ref.h"
#include "base/result.h"
#include "base/token_id.h"
#include "ops/step_state.h"
#include "runtime/kv_pool.h"

namespace eider {

/// A block's place in a session: positions index * 128 and on of one kind.
struct BlockPlace {
  int kind = 0;
  std::int64_t index = 0;
  bool operator==(const BlockPlace&) const = default;
};

/// Blocks of a session that hold positions 0..length-1.
std::int64_t blocks_for(std::int64_t length);

/// The longest length <= `length` whose continuation sees only blocks that are there.
std::int64_t resumable_length(const std::vector<KvKind>& kinds, std::int64_t length,
                              FunctionRef<bool(BlockPlace)> is_there);

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
  /// Makes sure that blocks of the session's own exist for `count` more tokens: a last, partial block that
  /// another session shares is copied. Fails, leaving the tokens as they are, as check_room() and
  /// KvPool::take() do.
  Status reserve(std::int64_t count);
  /// Records tokens that a step has stored, and gives back sliding-window blocks that neither the last token
  /// nor a later one can see.
  void append(std::span<const TokenId> tokens);

  /// Remembers the current length as a place to return to: window layers keep the blocks that a continuation
  /// from here can see, or from one token earlier (a new answer computes the prompt's last token again for
  /// its logits). The oldest such place gives way when there are more than keep_prompt_ends() says.
  void mark_prompt_end();
  /// `most` >= 1 places are remembered; 1 unless said otherwise.
  void keep_prompt_ends(std::int64_t most) { most_prompt_ends_ = most; }
  /// The marked places, ascending.
  std::span<const std::int64_t> prompt_ends() const { return prompt_ends_; }

  /// The longest length <= `length` from which a continuation has all it needs: `length` itself for models
  /// without windows, or while its windows' blocks are still here; else about a marked prompt end, or 0.
  /// `length` is at most length().
  std::int64_t resumable(std::int64_t length) const;
  /// Shortens to resumable(length), and returns that.
  std::int64_t rewind(std::int64_t length);
  /// Another session that holds the first resumable(length) tokens of this one and shares their blocks.
  Session fork(std::int64_t length) const;

  /// What a step reads. Valid until the next reserve(), append() or rewind().
  SequenceBlocks blocks() const;

  /// The places of the blocks that are there, and one's memory: what a saved session consists of.
  std::vector<BlockPlace> held_blocks() const;
  std::byte* block(BlockPlace place) const;
  /// Makes an empty session hold `tokens`, with blocks at `held` (each place once, indices ascending in each
  /// kind, below blocks_for(tokens)), whose contents the caller fills in before the next step. Fails, leaving
  /// it empty, as KvPool::take() does.
  Status restore(std::span<const TokenId> tokens, std::span<const std::int64_t> prompt_ends,
                 std::span<const BlockPlace> held);

 private:
  using Table = std::vector<std::byte*>;

  Status own_last_block();
  void drop(int kind, std::int64_t block);
  void shrink_tables(std::int64_t length);
  void give_back_unseen(int kind);
  void forget_prompt_ends_beyond(std::int64_t length);

  KvPool* pool_;
  std::int64_t max_context_;
  std::int64_t most_prompt_ends_ = 1;
  std::vector<std::int64_t> prompt_ends_;  // ascending
  std::vector<TokenId> tokens_;            // room for max_context
  std::vector<Table> tables_;  // [kind][position / 128], null where given back; room for max_context
};

}  // namespace eider
