// Down products of mixtures of experts, of every format.
#include "backend/cpu/isa/isa.h"

namespace eider::cpu::EIDER_ISA {
using namespace host;  // NOLINT(google-build-using-namespace)
namespace {
#include EIDER_SIMD

#include "backend/cpu/kernels/tiles.inl.h"

#include "backend/cpu/kernels/unit_product.inl.h"

#include "backend/cpu/kernels/scales.inl.h"

#include "backend/cpu/kernels/parts_tree.inl.h"

#include "backend/cpu/kernels/staged.inl.h"

#include "ops/numerics.inl.h"

#include "backend/reference/vector.inl.h"

#include "backend/reference/route.inl.h"

#include "backend/cpu/kernels/moe_down.inl.h"

template <class F>
void add_moe_down(Kernels& table) {
  if constexpr (kOwnProducts<F>) table.moe_down[static_cast<std::size_t>(F::kFormat)] = &moe_down<F>;
}
}  // namespace

void add_moe_downs(Kernels& table, Fp8Form form) {
#define EIDER_ADD(F) add_moe_down<F>(table);
  EIDER_FORMATS(EIDER_ADD)
#undef EIDER_ADD
  if (form == Fp8Form::kFp9) add_moe_down<PackedAsFp9>(table);
}

}  // namespace eider::cpu::EIDER_ISA
