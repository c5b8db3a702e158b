// The table of an instruction set: the kernels that are the reference's text, which compilers turn into
// vectors of its width, and those of the other files.
#include "backend/cpu/isa/isa.h"

namespace eider::cpu::EIDER_ISA {
using namespace host;  // NOLINT(google-build-using-namespace)
namespace {
#include "backend/reference/common_table.inl.h"
}  // namespace

Kernels make_table(Fp8Form form) {
  Kernels table = common_table();
  table.name = EIDER_ISA_NAME;
  table.packing = &packing(form);
  table.scale_input = &scale_input<100>;  // for values times 2^-117
  add_products(table, form);
  add_moe_downs(table, form);
  add_attention(table);
  return table;
}

}  // namespace eider::cpu::EIDER_ISA
