// The text of all kernels and their table. Included inside a namespace of its own by kernels_baseline.cpp and
// kernels_fma.cpp, which have included what it needs (kernel_includes.h).

#include "ops/numerics.inl.h"

#include "backend/reference/vector.inl.h"

#include "backend/reference/product.inl.h"

#include "backend/reference/moe.inl.h"

#include "backend/reference/attention.inl.h"

constexpr Kernels kKernels = [] {
  Kernels table{};
  table.name = "reference";
  table.quantize_32 = &quantize<32>;
  table.quantize_256 = &quantize<256>;
#define EIDER_PRODUCTS(F)                                            \
  table.product[static_cast<std::size_t>(F::kFormat)] = &product<F>; \
  table.moe_down[static_cast<std::size_t>(F::kFormat)] = &moe_down<F>;
  EIDER_FORMATS(EIDER_PRODUCTS)
#undef EIDER_PRODUCTS
  table.moe_route = &moe_route;
  table.rms_norm = &rms_norm;
  table.rope = &rope;
  table.store_kv[static_cast<std::size_t>(KvType::kF16)] = &store_kv<HalfKv>;
  table.store_kv[static_cast<std::size_t>(KvType::kF32)] = &store_kv<FloatKv>;
  table.attention[static_cast<std::size_t>(KvType::kF16)] = &attention<HalfKv>;
  table.attention[static_cast<std::size_t>(KvType::kF32)] = &attention<FloatKv>;
  table.add = &add;
  table.gated_silu = &gated_silu;
  table.gated_gelu_tanh = &gated_gelu_tanh;
  table.soft_cap = &soft_cap;
  return table;
}();
