// Random weights straight in a storage format, for models that are measured and not asked anything: valid
// codes and scales, no quantiser, gigabytes in seconds.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/thread_pool.h"
#include "format/format.h"

namespace eider {

/// Standard deviation of random weights: that of common initialisations, with which activations keep their
/// size from layer to layer at hidden sizes of some thousands.
inline constexpr double kRandomWeightDeviation = 0.02;

/// The scale beside random FP8 codes that gives them this deviation: the codes' own is 107.1.
inline constexpr float kRandomFp8Scale = static_cast<float>(kRandomWeightDeviation / 107.1);

/// Fills `blocks` blocks of `format` with weights of mean 0 and the deviation above (FP8: without its scale);
/// the codes of a block are uniform, those of FP8 normally distributed, for how fast some CPUs multiply
/// depends on how many are subnormal. The bytes depend on format and seed alone, not on the threads of
/// `pool`.
void fill_random_weights(Format format, std::uint64_t seed, std::int64_t blocks, std::byte* out,
                         ThreadPool& pool);

}  // namespace eider
