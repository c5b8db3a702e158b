// The table for AVX-512.
#include "backend/cpu/isa/avx512.h"

namespace eider::cpu {

#if defined(__AVX512VNNI__)
namespace avx512 {
using namespace host;  // NOLINT(google-build-using-namespace)
#include "backend/cpu/kernels/make_table.inl.h"
}  // namespace avx512

const host::Kernels* avx512_kernels() {
  static const host::Kernels table = avx512::make_table("avx512");
  return &table;
}
#else
const host::Kernels* avx512_kernels() {
  return nullptr;
}
#endif

}  // namespace eider::cpu
