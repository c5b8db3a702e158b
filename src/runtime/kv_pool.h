// KvPool: the memory of all sessions' KV blocks. Blocks are handed out one at a time, counted by reference
// and never move; memory grows in slabs as contexts grow. Sessions call it; it knows nothing of positions or
// tokens.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/result.h"
#include "ops/backend.h"

namespace eider {

/// Not thread-safe: one engine's thread uses it.
class KvPool {
 public:
  /// `limit_bytes`: most memory the pool may take in all; 0: no limit. `backend` must outlive the pool.
  KvPool(Backend& backend, std::vector<KvKind> kinds, KvType type, std::int64_t limit_bytes);
  KvPool(const KvPool&) = delete;
  KvPool& operator=(const KvPool&) = delete;

  /// A block with one reference. Its content is whatever its last owner left: attention never reads a
  /// position before it is written. Fails with advice when the limit or the machine's memory is reached; near
  /// the limit, slabs of other kinds that are not in use make room.
  Result<std::byte*> take(int kind);
  void share(int kind, std::byte* block);                  ///< one more reference
  void release(int kind, std::byte* block);                ///< one fewer; the last one makes it free
  bool is_shared(int kind, const std::byte* block) const;  ///< whether it has more than one reference
  void copy(int kind, const std::byte* from, std::byte* to);

  const std::vector<KvKind>& kinds() const { return kinds_; }
  KvType type() const { return type_; }
  std::int64_t block_bytes(int kind) const { return state(kind).block_bytes; }
  std::int64_t limit_bytes() const { return limit_bytes_; }
  std::int64_t bytes_allocated() const { return bytes_allocated_; }
  std::int64_t blocks_in_use(int kind) const;
  std::int64_t bytes_in_use() const;  ///< of all kinds

 private:
  struct Slab {
    KvMemory memory;
    std::vector<std::int32_t> references;  // [block of the slab]
  };
  struct KindState {
    std::int64_t block_bytes = 0;
    std::int64_t blocks = 0;         // in all slabs
    std::vector<Slab> slabs;         // few: they grow geometrically
    std::vector<std::byte*> unused;  // room for every block, so that release() allocates nothing
  };

  KindState& state(int kind) { return states_[static_cast<std::size_t>(kind)]; }
  const KindState& state(int kind) const { return states_[static_cast<std::size_t>(kind)]; }
  Status add_slab(KindState& kind);
  void free_unused_slabs();
  static bool slab_has(const Slab& slab, std::int64_t block_bytes, const std::byte* block);
  static const std::int32_t& references(const KindState& kind, const std::byte* block);
  static std::int32_t& references(KindState& kind, const std::byte* block) {
    return const_cast<std::int32_t&>(references(std::as_const(kind), block));
  }

  Backend& backend_;
  std::vector<KvKind> kinds_;
  KvType type_;
  std::int64_t limit_bytes_;
  std::int64_t bytes_allocated_ = 0;
  std::vector<KindState> states_;
};

}  // namespace eider
