// The kernels for x86-64 with AVX2, FMA and F16C: src/CMakeLists.txt gives this file the flags.
#include "backend/reference/kernel_includes.h"
#include "backend/reference/tables.h"

namespace eider::reference {

using namespace host;  // NOLINT(google-build-using-namespace)

#if defined(__AVX2__) && defined(__FMA__)
namespace fma {
#include "backend/reference/kernels.inl.h"
}  // namespace fma

const Kernels* fma_kernels() {
  return &fma::kKernels;
}
#else
const Kernels* fma_kernels() {
  return nullptr;
}
#endif

}  // namespace eider::reference
