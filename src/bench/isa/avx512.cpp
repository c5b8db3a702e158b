// Probes for AVX-512 with VNNI.
#include "base/inline.h"
#include "bench/probes.h"

#if defined(__AVX512VNNI__)
#include <immintrin.h>

namespace eider::bench {
namespace avx512 {
namespace {

using Floats = __m512;
using Ints = __m512i;
constexpr int kFloatLanes = 16, kIntBytes = 64;
constexpr int kChains = 12, kDotChains = 12;

EIDER_ALWAYS_INLINE Floats splat(float value) {
  return _mm512_set1_ps(value);
}
EIDER_ALWAYS_INLINE Floats fma(Floats a, Floats b, Floats c) {
  return _mm512_fmadd_ps(a, b, c);
}
EIDER_ALWAYS_INLINE Ints splat_bytes(char value) {
  return _mm512_set1_epi8(value);
}
EIDER_ALWAYS_INLINE Ints dot(Ints sum, Ints codes, Ints x) {
  return _mm512_dpbusd_epi32(sum, codes, x);
}

#include "bench/isa/probes.inl.h"

#include "bench/isa/int8_dot.inl.h"

}  // namespace
}  // namespace avx512

const Probes* avx512_probes() {
  static const Probes table = avx512::make_probes("avx512", &avx512::int8_dot);
  return &table;
}

}  // namespace eider::bench
#else
namespace eider::bench {
const Probes* avx512_probes() {
  return nullptr;
}
}  // namespace eider::bench
#endif
