// The kernels for any CPU. On x86-64 fused multiply-adds are calls here, slow but the same bits.
#include "backend/reference/kernel_includes.h"
#include "backend/reference/tables.h"

namespace eider::reference {

using namespace host;  // NOLINT(google-build-using-namespace)

namespace baseline {
#include "backend/reference/kernels.inl.h"
}  // namespace baseline

const Kernels& baseline_kernels() {
  return baseline::kKernels;
}

}  // namespace eider::reference
