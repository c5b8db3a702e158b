// WorkShares: how threads share out the items of a phase whose pieces take unequal time, or that run on cores
// of unequal speed. Each thread begins with a fixed share, near which the memory is that it packed, and takes
// pieces from its front; who is done takes from the backs of the others' shares.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <vector>

#include "backend/host/kernels.h"
#include "base/thread_pool.h"

namespace eider::host {

class WorkShares {
 public:
  explicit WorkShares(int threads) : shares_(static_cast<std::size_t>(threads)) {}

  /// Most items of a phase.
  static constexpr std::int64_t kMostItems = (1 << 24) - 1;

  /// Calls body(piece) for pieces of the phase, at least `least` items each where so many are left, until
  /// nobody has any. All threads call this with equal arguments; `phase` is another number than that of the
  /// call before (of the first: not 0), and between the two all threads have met at a barrier.
  template <class Body>
  void work(std::uint16_t phase, std::int64_t items, std::int64_t least, int thread, Body body) {
    const auto threads = static_cast<int>(shares_.size());
    for (int i = 0; i < threads; ++i) {
      const int owner = (thread + i) % threads;
      for (;;) {
        const Items piece = take(phase, items, least, owner, owner == thread);
        if (piece.begin == piece.end) break;
        body(piece);
      }
    }
  }

 private:
  /// What is left of a thread's share: the phase's number, then begin and end of 24 bits. A share that still
  /// has an older phase's number is whole: whoever comes first, its owner or another, gives it the new one.
  struct alignas(64) Share {
    std::atomic<std::uint64_t> left{0};
  };
  static std::uint64_t pack(std::uint16_t phase, Items left) {
    return std::uint64_t{phase} << 48 | static_cast<std::uint64_t>(left.begin) << 24 |
           static_cast<std::uint64_t>(left.end);
  }

  /// A piece of the front or the back of a share; empty if nothing is left of it.
  Items take(std::uint16_t phase, std::int64_t items, std::int64_t least, int owner, bool front) {
    std::atomic<std::uint64_t>& share = shares_[static_cast<std::size_t>(owner)].left;
    std::uint64_t seen = share.load(std::memory_order_acquire);
    for (;;) {
      if (seen >> 48 != phase) {
        const auto [begin, end] = ThreadPool::share(items, 1, owner, static_cast<int>(shares_.size()));
        const std::uint64_t whole = pack(phase, {begin, end});
        if (!share.compare_exchange_weak(seen, whole, std::memory_order_acq_rel)) continue;
        seen = whole;
      }
      const Items left{static_cast<std::int64_t>(seen >> 24 & kMostItems),
                       static_cast<std::int64_t>(seen & kMostItems)};
      if (left.begin >= left.end) return {0, 0};
      // Large pieces first, so that there are few; small ones last, so that all are done at about one time.
      const std::int64_t size = std::min(std::max(least, (left.end - left.begin) / 4), left.end - left.begin);
      const Items piece = front ? Items{left.begin, left.begin + size} : Items{left.end - size, left.end};
      const Items rest = front ? Items{piece.end, left.end} : Items{left.begin, piece.begin};
      if (share.compare_exchange_weak(seen, pack(phase, rest), std::memory_order_acq_rel)) return piece;
    }
  }

  std::vector<Share> shares_;
};

}  // namespace eider::host
