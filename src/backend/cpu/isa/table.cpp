// The table of an instruction set: the kernels that are the reference's text, which compilers turn into
// vectors of its width, and those of the other files.
#include "backend/cpu/isa/isa.h"

namespace eider::cpu::EIDER_ISA {
using namespace host;  // NOLINT(google-build-using-namespace)
namespace {
#include "backend/reference/common_table.inl.h"

constexpr Packing kPacking{&packed_tile_bytes, &opened_tile_bytes, &pack_tile};
}  // namespace

Kernels make_table() {
  Kernels table = common_table();
  table.name = EIDER_ISA_NAME;
  table.packing = &kPacking;
  table.scale_input = &scale_input<100>;  // for values times 2^-120
  add_products(table);
  add_moe_downs(table);
  add_attention(table);
  return table;
}

}  // namespace eider::cpu::EIDER_ISA
