// The tables of the CPU backend, one an instruction set. A table is null where the build is for another
// architecture.
#pragma once

#include "backend/host/kernels.h"

namespace eider::cpu {

/// AVX-512 F, BW, DQ, VL and VNNI.
const host::Kernels* avx512_kernels();
/// AVX2, FMA, F16C.
const host::Kernels* avx2_kernels();

}  // namespace eider::cpu
