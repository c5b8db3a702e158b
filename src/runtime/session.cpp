#include "runtime/session.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace eider {
namespace {

// Blocks that hold positions 0..length-1.
std::int64_t blocks_for(std::int64_t length) {
  return (length + kKvBlockPositions - 1) / kKvBlockPositions;
}

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

}  // namespace

Session::Session(KvPool& pool, std::int64_t max_context) : pool_(&pool), max_context_(max_context) {
  tokens_.reserve(static_cast<std::size_t>(max_context));
  tables_.resize(pool.kinds().size());
  EIDER_CHECK(tables_.size() <= kMaxKvKinds);
  for (Table& table : tables_) table.reserve(static_cast<std::size_t>(blocks_for(max_context)));
}

Session::~Session() {
  shrink_tables(0);
}

Session& Session::operator=(Session&& other) noexcept {
  if (this == &other) return *this;
  shrink_tables(0);
  pool_ = other.pool_;
  max_context_ = other.max_context_;
  prompt_end_ = other.prompt_end_;
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
  const std::int64_t wanted = blocks_for(length() + count);
  for (int kind = 0; kind < static_cast<int>(tables_.size()); ++kind) {
    Table& table = tables_[static_cast<std::size_t>(kind)];
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

void Session::append(std::span<const TokenId> tokens) {
  const std::int64_t before = length();
  tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
  for (int kind = 0; kind < static_cast<int>(tables_.size()); ++kind) {
    EIDER_CHECK(blocks_for(length()) <=
                static_cast<std::int64_t>(tables_[static_cast<std::size_t>(kind)].size()));
    const std::int64_t window = pool_->kinds()[static_cast<std::size_t>(kind)].window;
    if (first_kept_block(before, window) != first_kept_block(length(), window)) give_back_unseen(kind);
  }
}

void Session::mark_prompt_end() {
  prompt_end_ = length();
  for (int kind = 0; kind < static_cast<int>(tables_.size()); ++kind) give_back_unseen(kind);
}

std::int64_t Session::rewind(std::int64_t length) {
  EIDER_CHECK(length >= 0 && length <= this->length());
  // A missing block that a continuation from `length` would see caps the length at its first position; that
  // lowers what other kinds must still have, so the search starts over. At 0 nothing is needed.
  const auto longest_without_gap = [this](std::int64_t candidate) {
    for (std::size_t kind = 0; kind < tables_.size(); ++kind) {
      const std::int64_t first = first_seen_block(candidate, pool_->kinds()[kind].window);
      for (std::int64_t block = blocks_for(candidate) - 1; block >= first; --block) {
        if (tables_[kind][static_cast<std::size_t>(block)] == nullptr) return block * kKvBlockPositions;
      }
    }
    return candidate;
  };
  for (std::int64_t shorter = longest_without_gap(length); shorter != length;) {
    length = shorter;
    shorter = longest_without_gap(length);
  }
  shrink_tables(length);
  tokens_.resize(static_cast<std::size_t>(length));
  prompt_end_ = std::min(prompt_end_, length);
  return length;
}

SequenceBlocks Session::blocks() const {
  SequenceBlocks blocks;
  for (std::size_t kind = 0; kind < tables_.size(); ++kind) blocks.blocks[kind] = tables_[kind].data();
  return blocks;
}

void Session::drop(int kind, std::int64_t block) {
  std::byte*& entry = tables_[static_cast<std::size_t>(kind)][static_cast<std::size_t>(block)];
  if (entry != nullptr) pool_->release(kind, std::exchange(entry, nullptr));
}

// Blocks beyond those of `length` tokens go back to the pool.
void Session::shrink_tables(std::int64_t length) {
  for (int kind = 0; kind < static_cast<int>(tables_.size()); ++kind) {
    Table& table = tables_[static_cast<std::size_t>(kind)];
    for (std::int64_t block = blocks_for(length); block < static_cast<std::int64_t>(table.size()); ++block) {
      drop(kind, block);
    }
    if (blocks_for(length) < static_cast<std::int64_t>(table.size())) {
      table.resize(static_cast<std::size_t>(blocks_for(length)));
    }
  }
}

// Blocks that neither a continuation from here nor one from the marked prompt end can see.
void Session::give_back_unseen(int kind) {
  const std::int64_t window = pool_->kinds()[static_cast<std::size_t>(kind)].window;
  const std::int64_t marked_from = first_kept_block(prompt_end_, window);
  const std::int64_t marked_to = blocks_for(prompt_end_);
  const std::int64_t kept_from = first_kept_block(length(), window);
  for (std::int64_t block = 0; block < kept_from; ++block) {
    if (block < marked_from || block >= marked_to) drop(kind, block);
  }
}

}  // namespace eider
