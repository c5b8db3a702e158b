// The two tables of the reference text.
#pragma once

#include "backend/host/kernels.h"

namespace eider::reference {

/// For any CPU of the build's architecture.
const host::Kernels& baseline_kernels();
/// For x86-64 with AVX2, FMA and F16C; null where the build is for something else.
const host::Kernels* fma_kernels();

}  // namespace eider::reference
