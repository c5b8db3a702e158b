// KvPool: the memory of all sessions' KV blocks. Blocks are handed out one at a time, counted by reference and never
// move; memory grows in slabs as contexts grow.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/result.h"
#include "ops/backend.h"

namespace eider {

class KvPool {
 public:
  /// `limit_bytes`: most memory the pool may take in all; 0: no limit. `backend` must outlive the pool.
  KvPool(Backend& backend, std::vector<KvKind> kinds, KvType type, std::int64_t limit_bytes);

  /// A block with one reference. Its content is whatever its last owner left: attention never reads a position before
  /// it is written. Fails with advice when the limit or the machine's memory is reached.
  Result<std::byte*> take(int kind);
  void share(int kind, std::byte* block);    // one more reference
  void release(int kind, std::byte* block);  // one fewer; the last one makes it free

  const std::vector<KvKind>& kinds() const { return kinds_; }
  KvType type() const { return type_; }
  std::int64_t bytes_allocated() const { return bytes_allocated_; }
  std::int64_t blocks_in_use(int kind) const;

 private:
  struct KindState;
  Backend& backend_;
  std::vector<KvKind> kinds_;
  KvType type_;
  std::int64_t limit_bytes_;
  std::int64_t bytes_allocated_ = 0;
  std::vector<KindState> states_;
};

}  // namespace eider
