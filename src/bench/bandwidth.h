// Bandwidth: how fast threads read, write and copy, each its own slice, memory that no cache holds or memory
// that its second-level cache does.
#pragma once

#include <cstddef>
#include <string_view>

#include "base/thread_pool.h"
#include "bench/paged_memory.h"
#include "bench/probes.h"
#include "bench/samples.h"

namespace eider::bench {

enum class Access { kRead, kWrite, kCopy };
std::string_view access_name(Access access);

class BandwidthProbe {
 public:
  /// References must outlive the probe. `cache_bytes`: of one core's second-level cache.
  BandwidthProbe(const Probes& probes, const PagedMemory& memory, std::size_t cache_bytes)
      : probes_(probes), memory_(memory), cache_bytes_(cache_bytes) {}

  /// Gigabytes a second of all threads together; a copied byte counts once. `streams`: an index into
  /// kStreamCounts. A sample walks the next window of the memory, and comes back to one only when it has been
  /// through all of them, so memory should be several times the last-level cache.
  Samples cold(Access access, std::size_t streams, ThreadPool& pool, int samples);
  /// The same within half of each thread's second-level cache.
  Samples hot(Access access, std::size_t streams, ThreadPool& pool, int samples) const;

 private:
  void walk(Access access, std::size_t streams, std::byte* data, std::size_t bytes) const;

  const Probes& probes_;
  const PagedMemory& memory_;
  std::size_t cache_bytes_;
  std::size_t next_window_ = 0;
};

}  // namespace eider::bench
