// The kernels that do not multiply with weights, and a table's entries for them: plain loops that compilers
// turn into vectors of any width. The reference and the CPU backend share this text.

#include "ops/numerics.inl.h"

#include "backend/reference/vector.inl.h"

#include "backend/reference/quantize.inl.h"

#include "backend/reference/route.inl.h"

#include "backend/reference/attention.inl.h"

constexpr Kernels common_table() {
  Kernels table{};
  table.quantize_32 = &quantize<32>;
  table.quantize_256 = &quantize<256>;
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
}
