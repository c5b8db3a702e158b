#include "runtime/session.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace eider {
namespace {

// The lowest block that a query at `position` or later can see: it sees positions above position - window.
std::int64_t first_seen_block(std::int64_t position, std::int64_t window) {
  if (window == 0) return 0;
  return std::max<std::int64_t>(0, position - window + 1) / kKvBlockPositions;
}

// The lowest block that stays with a session of `length` tokens: what its last token sees. That token may be
// computed once more, for the logits that another answer starts from.
std::int64_t first_kept_block(std::int64_t length, std::int64_t window) {
  return first_seen_block(length - 1, window);
}

std::size_t at(std::int64_t index) {
  return static_cast<std::size_t>(index);
}

}  // namespace

std::int64_t blocks_for(std::int64_t length) {
  return (length + kKvBlockPositions - 1) / kKvBlockPositions;
}

std::int64_t resumable_length(const std::vector<KvKind>& kinds, std::int64_t length,
                              FunctionRef<bool(BlockPlace)> is_there) {
  // A missing block that a continuation from `candidate` would see caps the length at its first position;
  // that lowers what other kinds must still have, so the search starts over. At 0 nothing is needed.
  const auto longest_without_gap = [&](std::int64_t candidate) {
    for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
      const std::int64_t first = first_seen_block(candidate, kinds[kind].window);
      for (std::int64_t block = blocks_for(candidate) - 1; block >= first; --block) {
        if (!is_there({static_cast<int>(kind), block})) return block * kKvBlockPositions;
      }
    }
    return candidate;
  };
  for (std::int64_t shorter = longest_without_gap(length); shorter != length;) {
    length = shorter;
    shorter = longest_without_gap(length);
  }
  return length;
}

Session::Session(KvPool& pool, std::int64_t max_context) : pool_(&pool), max_context_(max_context) {
  tokens_.reserve(at(max_context));
  tables_.resize(pool.kinds().size());
  EIDER_CHECK(tables_.size() <= kMaxKvKinds);
  for (Table& table : tables_) table.reserve(at(blocks_for(max_context)));
}

Session::~Session() {
  shrink_tables(0);
}

Session& Session::operator=(Session&& other) noexcept {
  if (this == &other) return *this;
  shrink_tables(0);
  pool_ = other.pool_;
  max_context_ = other.max_context_;
  most_prompt_ends_ = other.most_prompt_ends_;
  prompt_ends_ = std::move(other.prompt_ends_);
  tokens_ = std::move(other.tokens_);
  tables_ = std::exchange(other.tables_, {});
  return *this;
}

Status Session::check_room(std::int64_t count) const {
  if (count <= max_context_ - length()) return {};
  return error(
      "{} more tokens do not fit: the context of {} holds {} already; use a larger context (-c) or a shorter "
      "prompt",
      count, max_context_, length());
}

Status Session::reserve(std::int64_t count) {
  EIDER_TRY_STATUS(check_room(count));
  EIDER_TRY_STATUS(own_last_block());
  const std::int64_t wanted = blocks_for(length() + count);
  for (int kind = 0; kind < static_cast<int>(tables_.size()); ++kind) {
    Table& table = tables_[at(kind)];
    while (static_cast<std::int64_t>(table.size()) < wanted) {
      auto block = pool_->take(kind);
      if (!block.ok()) {
        shrink_tables(length());
        return std::move(block).error();
      }
      table.push_back(*block);
    }
  }
  return {};
}

Status Session::own_last_block() {
  if (length() % kKvBlockPositions == 0) return {};
  for (int kind = 0; kind < static_cast<int>(tables_.size()); ++kind) {
    std::byte*& last = tables_[at(kind)][at(length() / kKvBlockPositions)];
    if (!pool_->is_shared(kind, last)) continue;
    EIDER_TRY(std::byte* const own, pool_->take(kind));
    pool_->copy(kind, last, own);
    pool_->release(kind, std::exchange(last, own));
  }
  return {};
}

void Session::append(std::span<const TokenId> tokens) {
  const std::int64_t before = length();
  tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
  for (int kind = 0; kind < static_cast<int>(tables_.size()); ++kind) {
    EIDER_CHECK(blocks_for(length()) <= static_cast<std::int64_t>(tables_[at(kind)].size()));
    const std::int64_t window = pool_->kinds()[at(kind)].window;
    if (first_kept_block(before, window) != first_kept_block(length(), window)) give_back_unseen(kind);
  }
}

void Session::mark_prompt_end() {
  if (prompt_ends_.empty() || prompt_ends_.back() != length()) prompt_ends_.push_back(length());
  if (static_cast<std::int64_t>(prompt_ends_.size()) > most_prompt_ends_)
    prompt_ends_.erase(prompt_ends_.begin());
  for (int kind = 0; kind < static_cast<int>(tables_.size()); ++kind) give_back_unseen(kind);
}

std::int64_t Session::resumable(std::int64_t length) const {
  EIDER_CHECK(length >= 0 && length <= this->length());
  return resumable_length(pool_->kinds(), length,
                          [this](BlockPlace place) { return block(place) != nullptr; });
}

std::int64_t Session::rewind(std::int64_t length) {
  length = resumable(length);
  shrink_tables(length);
  tokens_.resize(at(length));
  forget_prompt_ends_beyond(length);
  return length;
}

Session Session::fork(std::int64_t length) const {
  length = resumable(length);
  Session copy(*pool_, max_context_);
  copy.most_prompt_ends_ = most_prompt_ends_;
  copy.prompt_ends_ = prompt_ends_;
  copy.tokens_.assign(tokens_.begin(), tokens_.begin() + length);
  copy.forget_prompt_ends_beyond(length);
  for (int kind = 0; kind < static_cast<int>(tables_.size()); ++kind) {
    Table& table = copy.tables_[at(kind)];
    table.assign(tables_[at(kind)].begin(), tables_[at(kind)].begin() + blocks_for(length));
    for (std::byte* const block : table) {
      if (block != nullptr) pool_->share(kind, block);
    }
    copy.give_back_unseen(kind);
  }
  return copy;
}

SequenceBlocks Session::blocks() const {
  SequenceBlocks blocks;
  for (std::size_t kind = 0; kind < tables_.size(); ++kind) blocks.blocks[kind] = tables_[kind].data();
  return blocks;
}

std::vector<BlockPlace> Session::held_blocks() const {
  std::vector<BlockPlace> held;
  for (int kind = 0; kind < static_cast<int>(tables_.size()); ++kind) {
    for (std::int64_t index = 0; index < blocks_for(length()); ++index) {
      if (block({kind, index}) != nullptr) held.push_back({kind, index});
    }
  }
  return held;
}

std::byte* Session::block(BlockPlace place) const {
  return tables_[at(place.kind)][at(place.index)];
}

Status Session::restore(std::span<const TokenId> tokens, std::span<const std::int64_t> prompt_ends,
                        std::span<const BlockPlace> held) {
  EIDER_CHECK(length() == 0);
  EIDER_TRY_STATUS(check_room(static_cast<std::int64_t>(tokens.size())));
  for (Table& table : tables_)
    table.resize(at(blocks_for(static_cast<std::int64_t>(tokens.size()))), nullptr);
  for (const BlockPlace& place : held) {
    auto block = pool_->take(place.kind);
    if (!block.ok()) {
      shrink_tables(0);
      return std::move(block).error();
    }
    tables_[at(place.kind)][at(place.index)] = *block;
  }
  tokens_.assign(tokens.begin(), tokens.end());
  prompt_ends_.assign(prompt_ends.begin(), prompt_ends.end());
  return {};
}

void Session::drop(int kind, std::int64_t block) {
  std::byte*& entry = tables_[at(kind)][at(block)];
  if (entry != nullptr) pool_->release(kind, std::exchange(entry, nullptr));
}

// Blocks beyond those of `length` tokens go back to the pool.
void Session::shrink_tables(std::int64_t length) {
  for (int kind = 0; kind < static_cast<int>(tables_.size()); ++kind) {
    Table& table = tables_[at(kind)];
    for (std::int64_t block = blocks_for(length); block < static_cast<std::int64_t>(table.size()); ++block) {
      drop(kind, block);
    }
    if (blocks_for(length) < static_cast<std::int64_t>(table.size())) table.resize(at(blocks_for(length)));
  }
}

// Blocks that neither a continuation from here nor one from a marked prompt end can see.
void Session::give_back_unseen(int kind) {
  const std::int64_t window = pool_->kinds()[at(kind)].window;
  const auto marked = [&](std::int64_t block) {
    return std::any_of(prompt_ends_.begin(), prompt_ends_.end(), [&](std::int64_t end) {
      return block >= first_kept_block(end, window) && block < blocks_for(end);
    });
  };
  const std::int64_t kept_from = first_kept_block(length(), window);
  for (std::int64_t block = 0; block < kept_from; ++block) {
    if (!marked(block)) drop(kind, block);
  }
}

// Places that are no more become the end, so that it can be returned to as they could.
void Session::forget_prompt_ends_beyond(std::int64_t length) {
  if (prompt_ends_.empty() || prompt_ends_.back() <= length) return;
  while (!prompt_ends_.empty() && prompt_ends_.back() >= length) prompt_ends_.pop_back();
  prompt_ends_.push_back(length);
}

}  // namespace eider
