// Kernels by themselves: products of one weight with one or many tokens, read from memory or from caches.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "backend/cpu/fp8_form.h"
#include "backend/host/kernels.h"
#include "base/result.h"
#include "base/thread_pool.h"
#include "bench/paged_memory.h"
#include "bench/progress.h"
#include "bench/roof.h"
#include "bench/samples.h"
#include "bench/time_limit.h"

namespace eider::bench {

struct KernelCase {
  Format format;
  std::int64_t rows, columns;
  std::int64_t tokens;  ///< 1: a matrix times a vector (GEMV); more: times a matrix (GEMM)
  /// Read from memory: the product goes round over copies of the weight. Else from the threads' second-level
  /// caches, with as many of the rows as fit half of them.
  bool cold;
  Fp8Form fp8_as = Fp8Form::kFp8;  ///< the setup's kernels', of FP8 weights

  /// "Q4_K"; of FP8 as fp9 "fp9"
  const char* format_text() const;
  /// Of the weights as stored, as fp9 of 9 bits a weight.
  std::int64_t weight_bytes(std::int64_t of_rows) const;
};

struct KernelResult {
  KernelCase kernel;
  std::string isa;
  int threads = 1;
  std::int64_t rows = 0;  ///< that were multiplied
  Samples products_s;     ///< products a second
  Roof roof;              ///< as read before the format's first case
  double fraction_of_roof = 0;

  /// 10^9 a second, of the median: bytes of weights as stored, weights, operations (two a multiply-add).
  double gb_s() const;
  double gweights_s() const;
  double gop_s() const;
};

/// What measures. `memory` holds the copies of weights: some times the last-level cache. References must
/// outlive the measurement.
struct KernelSetup {
  const host::Kernels& kernels;
  ThreadPool& pool;
  const PagedMemory& memory;
  std::size_t cache_bytes;  ///< of one core's second-level cache
};

/// Each case `samples` times; `read_roof` is called when the format changes, `progress` after each case. When
/// `limit` is over, the case of then has fewer samples, and those behind it have no result. Fails where
/// columns are no multiple of the format's block, or the memory holds no copy.
Result<std::vector<KernelResult>> measure_kernels(const KernelSetup& setup,
                                                  const std::vector<KernelCase>& cases, int samples,
                                                  const std::function<Roof()>& read_roof,
                                                  const Progress& progress, const TimeLimit& limit = {});

}  // namespace eider::bench
