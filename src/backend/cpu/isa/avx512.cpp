// The table for AVX-512, and its kernels that are the reference's text, which compilers turn into vectors of
// this width.
#include "backend/cpu/isa/avx512.h"

namespace eider::cpu {

#if defined(__AVX512VNNI__)
namespace avx512 {
namespace {
using namespace host;  // NOLINT(google-build-using-namespace)
#include "backend/reference/common_table.inl.h"

constexpr Packing kPacking{&packed_tile_bytes, &pack_tile};
}  // namespace

Kernels make_table() {
  Kernels table = common_table();
  table.name = "avx512";
  table.packing = &kPacking;
  add_products(table);
  add_moe_downs(table);
  return table;
}
}  // namespace avx512

const host::Kernels* avx512_kernels() {
  static const host::Kernels table = avx512::make_table();
  return &table;
}
#else
const host::Kernels* avx512_kernels() {
  return nullptr;
}
#endif

}  // namespace eider::cpu
