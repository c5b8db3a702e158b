// The table of an instruction set that has better dot products than another, EIDER_BASE_ISA, and is that one
// in all else.
#include "backend/cpu/isa/isa.h"

namespace eider::cpu::EIDER_ISA {

host::Kernels make_table(Fp8Form form) {
  host::Kernels table = EIDER_BASE_ISA::make_table(form);
  table.name = EIDER_ISA_NAME;
  add_products(table, form);
  add_moe_downs(table, form);
  return table;
}

}  // namespace eider::cpu::EIDER_ISA
