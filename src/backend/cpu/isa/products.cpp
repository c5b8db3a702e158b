// Products of every format.
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

#include "backend/cpu/kernels/product.inl.h"

template <class F>
void add_product(Kernels& table) {
  if constexpr (kOwnProducts<F>) table.product[static_cast<std::size_t>(F::kFormat)] = &product<F>;
}
}  // namespace

void add_products(Kernels& table, Fp8Form form) {
#define EIDER_ADD(F) add_product<F>(table);
  EIDER_FORMATS(EIDER_ADD)
#undef EIDER_ADD
  if (form == Fp8Form::kFp9) add_product<PackedAsFp9>(table);
}

}  // namespace eider::cpu::EIDER_ISA
