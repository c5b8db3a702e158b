// Probes for what every CPU of the architecture has.
#include "base/inline.h"
#include "bench/probes.h"

#if defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace eider::bench {
namespace baseline {
namespace {

using Floats = float __attribute__((vector_size(16)));
constexpr int kFloatLanes = 4;
constexpr int kChains = 12;

EIDER_ALWAYS_INLINE Floats splat(float value) {
  return Floats{value, value, value, value};
}
EIDER_ALWAYS_INLINE Floats fma(Floats a, Floats b, Floats c) {
#if defined(__aarch64__)
  return reinterpret_cast<Floats>(vfmaq_f32(
      reinterpret_cast<float32x4_t>(c), reinterpret_cast<float32x4_t>(a), reinterpret_cast<float32x4_t>(b)));
#else
  return a * b + c;
#endif
}

#include "bench/isa/probes.inl.h"

}  // namespace
}  // namespace baseline

const Probes* baseline_probes() {
  static const Probes table = baseline::make_probes("baseline", nullptr);
  return &table;
}

}  // namespace eider::bench
