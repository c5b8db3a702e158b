// The tables of the CPU backend: one for each instruction set that the build has (isa/CMakeLists.txt), each
// to be called only where the machine has what its comment says.
#pragma once

#include "backend/cpu/fp8_form.h"
#include "backend/host/kernels.h"

namespace eider::cpu {

/// Any CPU.
namespace scalar {
host::Kernels make_table(Fp8Form form);
}

// x86-64.

/// AVX2, FMA and F16C.
namespace avx2 {
host::Kernels make_table(Fp8Form form);
}
/// What avx2 asks for, and AVX-VNNI.
namespace avx2_vnni {
host::Kernels make_table(Fp8Form form);
}
/// AVX-512 F, BW, DQ, VL and VNNI, and what avx2 asks for.
namespace avx512 {
host::Kernels make_table(Fp8Form form);
}

// 64-bit ARM.

/// Any, for NEON is part of it.
namespace neon {
host::Kernels make_table(Fp8Form form);
}
/// The dot product instructions of ARMv8.2.
namespace neon_dot {
host::Kernels make_table(Fp8Form form);
}

}  // namespace eider::cpu
