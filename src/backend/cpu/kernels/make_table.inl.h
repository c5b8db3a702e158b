// The table of an instruction set: the kernels that are the reference's text, which compilers turn into
// vectors of its width, and the products of its other files.

namespace {
#include "backend/reference/common_table.inl.h"

constexpr Packing kPacking{&packed_tile_bytes, &pack_tile};
}  // namespace

Kernels make_table(const char* name) {
  Kernels table = common_table();
  table.name = name;
  table.packing = &kPacking;
  add_products(table);
  add_moe_downs(table);
  return table;
}
