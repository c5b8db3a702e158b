// The text of all kernels and their table. Included inside a namespace of its own by kernels_baseline.cpp and
// kernels_fma.cpp, which have included what it needs (kernel_includes.h).

#include "backend/reference/common_table.inl.h"

#include "backend/reference/product.inl.h"

#include "backend/reference/moe.inl.h"

constexpr Kernels kKernels = [] {
  Kernels table = common_table();
  table.name = "reference";
  table.scale_input = &scale_input<-17>;
#define EIDER_PRODUCTS(F)                                            \
  table.product[static_cast<std::size_t>(F::kFormat)] = &product<F>; \
  table.moe_down[static_cast<std::size_t>(F::kFormat)] = &moe_down<F>;
  EIDER_FORMATS(EIDER_PRODUCTS)
#undef EIDER_PRODUCTS
  return table;
}();
