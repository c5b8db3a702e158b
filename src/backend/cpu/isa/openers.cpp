// Opening units of every format.
#include "backend/cpu/isa/isa.h"

namespace eider::cpu::EIDER_ISA {
namespace {
#include EIDER_SIMD

#include "backend/cpu/kernels/tiles.inl.h"

#include "backend/cpu/kernels/open.inl.h"

template <class F>
constexpr OpenUnits opener_of() {
  if constexpr (!kOwnProducts<F>)
    return nullptr;
  else if constexpr (F::kProduct == ProductRule::kScaledFloat)
    return &open_fp8<F>;
  else if constexpr (is_float_rule(F::kProduct))
    return &open_floats<F>;
  else
    return &open_integers<F>;
}
}  // namespace

OpenUnits opener(Format format, Fp8Form form) {
  if (format == PackedAsFp9::kFormat && form == Fp8Form::kFp9) return opener_of<PackedAsFp9>();
  switch (format) {
#define EIDER_CASE(F) \
  case F::kFormat:    \
    return opener_of<F>();
    EIDER_FORMATS(EIDER_CASE)
#undef EIDER_CASE
  }
  return nullptr;
}

}  // namespace eider::cpu::EIDER_ISA
