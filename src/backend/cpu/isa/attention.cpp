// Attention over keys and values of every type.
#include "backend/cpu/isa/isa.h"

namespace eider::cpu::EIDER_ISA {
using namespace host;  // NOLINT(google-build-using-namespace)
namespace {
#include EIDER_SIMD

#include "backend/cpu/kernels/tiles.inl.h"

#include "backend/cpu/kernels/unit_product.inl.h"

#include "backend/cpu/kernels/parts_tree.inl.h"

#include "ops/numerics.inl.h"

#include "backend/reference/vector.inl.h"

#include "backend/cpu/kernels/attention_rows.inl.h"

#include "backend/cpu/kernels/attention.inl.h"
}  // namespace

void add_attention(Kernels& table) {
  table.attention[static_cast<std::size_t>(KvType::kF16)] = &attention<F16>;
  table.attention[static_cast<std::size_t>(KvType::kF32)] = &attention<F32>;
  table.attention_blocks[static_cast<std::size_t>(KvType::kF16)] = &attention_blocks<F16>;
  table.attention_blocks[static_cast<std::size_t>(KvType::kF32)] = &attention_blocks<F32>;
  table.attention_merge = &attention_merge;
}

}  // namespace eider::cpu::EIDER_ISA
