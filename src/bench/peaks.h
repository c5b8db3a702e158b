// Peaks: what the arithmetic units give when nothing keeps them waiting.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/machine.h"
#include "base/thread_pool.h"
#include "bench/probes.h"
#include "bench/samples.h"

namespace eider::bench {

/// Tables that this machine can run, best first; never empty.
std::vector<const Probes*> usable_probes(const Machine& machine);
/// The table that measures the roof of kernels of `isa` (a name out of cpu_isas()): the one of that name,
/// else the baseline.
const Probes& probes_for(const Machine& machine, std::string_view isa);

/// 10^9 operations a second of all threads, two a multiply-add.
Samples measure_peak(std::int64_t (*probe)(std::int64_t rounds), ThreadPool& pool, int samples);

}  // namespace eider::bench
