// The CPU backend: the reference's arithmetic, bit for bit, at the speed of the machine. Weights are packed
// at load (packed.h), and one table of kernels is chosen by what the CPU has.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "backend/cpu/fp8_form.h"
#include "backend/host/kernels.h"
#include "base/machine.h"
#include "base/result.h"
#include "base/thread_pool.h"
#include "ops/backend.h"

namespace eider {

/// Names of the instruction sets that this build and this machine have, best first; the last is
/// "scalar", which every one has.
std::vector<std::string_view> cpu_isas(const Machine& machine);

/// The kernels of an instruction set by themselves, for measurements; null where it is not one of cpu_isas().
const host::Kernels* cpu_kernels(const Machine& machine, std::string_view isa, Fp8Form form = Fp8Form::kFp8);

/// Of the layout that weights are packed in.
std::uint32_t cpu_packing_version(Fp8Form form);

/// `isa` is one of cpu_isas(); an error names the others. FP8 weights are packed as `form`. `pool` must
/// outlive the backend.
Result<std::unique_ptr<Backend>> make_cpu_backend(ThreadPool& pool, const Machine& machine,
                                                  std::string_view isa, Fp8Form form = Fp8Form::kFp8);

}  // namespace eider
