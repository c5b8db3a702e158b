// Roof: the speeds that kernels and models are held against, taken beside them because shared machines change
// from minute to minute.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/machine.h"
#include "base/thread_pool.h"
#include "bench/paged_memory.h"

namespace eider::bench {

/// Of all threads of a pool together.
struct Roof {
  double memory_read = 0;  ///< GB/s, the best number of streams
  double cache_read = 0;   ///< GB/s, from the threads' second-level caches
  double fp32 = 0;         ///< 10^9 operations a second
  double int8 = 0;         ///< the same; where the instruction set has no integer products, fp32

  /// The middle of two readings.
  static Roof between(const Roof& a, const Roof& b);
};

/// Work by the roof that limits it.
struct Work {
  double bytes = 0;     ///< read from memory
  double int8_ops = 0;  ///< two a multiply-add
  double fp32_ops = 0;
};

/// Shares of the roofs at which `seconds` of `work` ran, 1 at the roof; and the larger one: how near the
/// work came to what limits it.
struct RoofShare {
  double memory, arithmetic;
  double nearest() const { return memory > arithmetic ? memory : arithmetic; }
};
RoofShare share_of_roof(const Work& work, double seconds, const Roof& roof, bool from_cache = false);

/// The memory roof alone, GB/s. `memory`: some times the last-level cache, in huge pages.
double measure_memory_read(const PagedMemory& memory, const Machine& machine, ThreadPool& pool);

/// Takes about a tenth of a second. `memory`: as above; `cache_bytes`: of one core's second-level cache.
Roof measure_roof(const PagedMemory& memory, const Machine& machine, std::string_view isa,
                  std::size_t cache_bytes, ThreadPool& pool);

}  // namespace eider::bench
