// The table for AVX2.
#include "backend/cpu/isa/avx2.h"

namespace eider::cpu {

#if defined(__AVX2__)
namespace avx2 {
using namespace host;  // NOLINT(google-build-using-namespace)
#include "backend/cpu/kernels/make_table.inl.h"
}  // namespace avx2

const host::Kernels* avx2_kernels() {
  static const host::Kernels table = avx2::make_table("avx2");
  return &table;
}
#else
const host::Kernels* avx2_kernels() {
  return nullptr;
}
#endif

}  // namespace eider::cpu
