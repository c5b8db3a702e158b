// Which packed form of FP8 weights this machine multiplies sooner: fp9 reads an eighth more and takes it
// apart otherwise, and what a core can do meanwhile is not known from its name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "backend/cpu/fp8_form.h"
#include "base/machine.h"
#include "base/result.h"
#include "base/thread_pool.h"

namespace eider {

/// FP8 codes that a measurement takes.
inline constexpr std::int64_t kFp8TimingCodes = std::int64_t{32} * 2048;

/// Both forms in turn, as a token is decoded and as a prompt is read, each with `bytes` of weights, which
/// caches should not hold. `codes`: kFp8TimingCodes typical ones, over and over; as few of them are subnormal
/// as in checkpoints, which costs some CPUs much in the one form and nothing in the other. Takes some tenths
/// of a second. `isa` is one of cpu_isas(). Fails where the memory cannot be had.
Result<Fp8Form> measure_faster_fp8_form(const Machine& machine, std::string_view isa, ThreadPool& pool,
                                        std::size_t bytes, std::span<const std::byte> codes);

}  // namespace eider
