// The loop of byte-pair encoding, shared by both kinds of vocabulary: of all joins of two neighbours, take
// the one of the lowest rank, the leftmost of equals, until none is left. O(n log n) in the number of
// symbols.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include "base/check.h"
#include "text/vocabulary.h"

namespace eider {

/// What joining two neighbours gives.
struct Join {
  static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

  std::uint32_t rank = kNone;
  TokenId id = kNoToken;
};

struct Symbol {
  static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

  std::uint32_t begin = 0;  ///< bytes [begin, begin + size) of the text being merged
  std::uint32_t size = 0;
  TokenId id = kNoToken;  ///< kNoToken: a character that is no token
  std::uint32_t previous = kNone;
  std::uint32_t next = kNone;
  Join with_next{};
};

/// Longest text that may be merged at once: positions are 32 bits.
inline constexpr std::size_t kMaxMergeBytes = std::size_t{1} << 30;

/// A doubly linked list of symbols over a text, and the heap of their joins. Reusable: clear() keeps the
/// memory.
class SymbolList {
 public:
  void clear() {
    symbols_.clear();
    heap_.clear();
  }

  void append(std::uint32_t size, TokenId id) {
    const auto index = static_cast<std::uint32_t>(symbols_.size());
    Symbol symbol{.size = size, .id = id};
    if (index > 0) {
      Symbol& last = symbols_.back();
      symbol.begin = last.begin + last.size;
      symbol.previous = index - 1;
      last.next = index;
    }
    symbols_.push_back(symbol);
  }

  /// `find`: Join(const Symbol& left, const Symbol& right), rank Join::kNone where the two do not join.
  template <class FindJoin>
  void merge(FindJoin find) {
    for (std::uint32_t i = 0; i + 1 < symbols_.size(); ++i) {
      symbols_[i].with_next = find(symbols_[i], symbols_[i + 1]);
      if (symbols_[i].with_next.rank != Join::kNone) heap_.push_back(key(i));
    }
    std::ranges::make_heap(heap_, std::greater());
    while (!heap_.empty()) {
      std::ranges::pop_heap(heap_, std::greater());
      const auto rank = static_cast<std::uint32_t>(heap_.back() >> 32);
      const auto left = static_cast<std::uint32_t>(heap_.back());
      heap_.pop_back();
      if (symbols_[left].with_next.rank != rank) continue;  // one of the two has changed since
      join(left);
      if (symbols_[left].previous != Symbol::kNone) push(symbols_[left].previous, find);
      push(left, find);
    }
  }

  template <class Take>
  void for_each(Take take) const {
    for (std::uint32_t i = symbols_.empty() ? Symbol::kNone : 0; i != Symbol::kNone; i = symbols_[i].next) {
      take(symbols_[i]);
    }
  }

 private:
  // Rank above position: the smallest key is the lowest rank, leftmost.
  std::uint64_t key(std::uint32_t left) const {
    return (std::uint64_t{symbols_[left].with_next.rank} << 32) | left;
  }

  template <class FindJoin>
  void push(std::uint32_t left, FindJoin& find) {
    Symbol& symbol = symbols_[left];
    symbol.with_next = symbol.next == Symbol::kNone ? Join{} : find(symbol, symbols_[symbol.next]);
    if (symbol.with_next.rank == Join::kNone) return;
    heap_.push_back(key(left));
    std::ranges::push_heap(heap_, std::greater());
  }

  void join(std::uint32_t left_index) {
    Symbol& left = symbols_[left_index];
    Symbol& right = symbols_[left.next];
    left.size += right.size;
    left.id = left.with_next.id;
    left.next = right.next;
    if (right.next != Symbol::kNone) symbols_[right.next].previous = left_index;
    right.with_next = {};  // its entries in the heap are void
  }

  std::vector<Symbol> symbols_;
  std::vector<std::uint64_t> heap_;
};

}  // namespace eider
