#include "bench/roof.h"

#include <algorithm>

#include "bench/bandwidth.h"
#include "bench/peaks.h"

namespace eider::bench {
namespace {

constexpr int kRoofSamples = 3;

}  // namespace

Roof Roof::between(const Roof& a, const Roof& b) {
  return {(a.memory_read + b.memory_read) / 2, (a.cache_read + b.cache_read) / 2, (a.fp32 + b.fp32) / 2,
          (a.int8 + b.int8) / 2};
}

RoofShare share_of_roof(const Work& work, double seconds, const Roof& roof, bool from_cache) {
  const double memory_seconds = work.bytes / 1e9 / (from_cache ? roof.cache_read : roof.memory_read);
  const double arithmetic_seconds = work.int8_ops / 1e9 / roof.int8 + work.fp32_ops / 1e9 / roof.fp32;
  return {memory_seconds / seconds, arithmetic_seconds / seconds};
}

double measure_memory_read(const PagedMemory& memory, const Machine& machine, ThreadPool& pool) {
  BandwidthProbe bandwidth(*usable_probes(machine).front(), memory, 0);
  double best = 0;
  for (std::size_t streams = 0; streams < kStreamCountCount; ++streams)
    best = std::max(best, bandwidth.cold(Access::kRead, streams, pool, kRoofSamples).median());
  return best;
}

Roof measure_roof(const PagedMemory& memory, const Machine& machine, std::string_view isa,
                  std::size_t cache_bytes, ThreadPool& pool) {
  const Probes& probes = probes_for(machine, isa);
  const BandwidthProbe bandwidth(*usable_probes(machine).front(), memory, cache_bytes);
  Roof roof{.memory_read = measure_memory_read(memory, machine, pool)};
  for (std::size_t streams = 0; streams < kStreamCountCount; ++streams)
    roof.cache_read =
        std::max(roof.cache_read, bandwidth.hot(Access::kRead, streams, pool, kRoofSamples).median());
  roof.fp32 = measure_peak(probes.fp32_fma, pool, kRoofSamples).median();
  roof.int8 =
      probes.int8_dot == nullptr ? roof.fp32 : measure_peak(probes.int8_dot, pool, kRoofSamples).median();
  return roof;
}

}  // namespace eider::bench
