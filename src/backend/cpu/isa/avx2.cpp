// The table for AVX2, and its kernels that are the reference's text, which compilers turn into vectors of
// this width.
#include "backend/cpu/isa/avx2.h"

namespace eider::cpu {

#if defined(__AVX2__)
namespace avx2 {
namespace {
using namespace host;  // NOLINT(google-build-using-namespace)
#include "backend/reference/common_table.inl.h"

constexpr Packing kPacking{&packed_tile_bytes, &pack_tile};
}  // namespace

Kernels make_table() {
  Kernels table = common_table();
  table.name = "avx2";
  table.packing = &kPacking;
  add_products(table);
  add_moe_downs(table);
  return table;
}
}  // namespace avx2

const host::Kernels* avx2_kernels() {
  static const host::Kernels table = avx2::make_table();
  return &table;
}
#else
const host::Kernels* avx2_kernels() {
  return nullptr;
}
#endif

}  // namespace eider::cpu
