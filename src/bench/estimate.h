// Estimates: how long a measurement takes at most, told before it begins, so that nobody waits in the dark,
// and held by a TimeLimit.
#pragma once

#include <vector>

#include "bench/attention_bench.h"
#include "bench/kernel_bench.h"
#include "bench/machine_bench.h"
#include "bench/model_bench.h"

namespace eider::bench {

// Seconds on a machine that nothing else uses, from what is to be done and the roofs, at shares of the roofs
// that kernels do not fall below. The reference backend may take longer.

/// For the machine itself speeds are assumed that any machine of this century reaches.
double most_seconds(const MachineOptions& options);
/// `cold_bytes`: of the memory that copies of weights fill.
double most_seconds(const std::vector<KernelCase>& cases, int samples, const Roof& roof, double cold_bytes);
double most_seconds(const std::vector<AttentionCase>& cases, int samples, const Roof& roof,
                    double cold_bytes);
/// Without the loading of the model.
double most_seconds(const Plan& plan, KvType kv_type, const std::vector<ModelTest>& tests, int repetitions,
                    const Roof& roof);

}  // namespace eider::bench
