// Probes for AVX2 with FMA. A product of bytes takes three instructions here.
#include "base/inline.h"
#include "bench/probes.h"

#if defined(__AVX2__)
#include <immintrin.h>

namespace eider::bench {
namespace avx2 {
namespace {

using Floats = __m256;
using Ints = __m256i;
constexpr int kFloatLanes = 8, kIntBytes = 32;
constexpr int kChains = 12, kDotChains = 8;

EIDER_ALWAYS_INLINE Floats splat(float value) {
  return _mm256_set1_ps(value);
}
EIDER_ALWAYS_INLINE Floats fma(Floats a, Floats b, Floats c) {
  return _mm256_fmadd_ps(a, b, c);
}
EIDER_ALWAYS_INLINE Ints splat_bytes(char value) {
  return _mm256_set1_epi8(value);
}
EIDER_ALWAYS_INLINE Ints dot(Ints sum, Ints codes, Ints x) {
  asm volatile("" : "+x"(codes));  // or the products, always the same, would leave the loop
  const Ints pairs = _mm256_maddubs_epi16(codes, x);
  return _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
}

#include "bench/isa/probes.inl.h"

#include "bench/isa/int8_dot.inl.h"

}  // namespace
}  // namespace avx2

const Probes* avx2_probes() {
  static const Probes table = avx2::make_probes("avx2", &avx2::int8_dot);
  return &table;
}

}  // namespace eider::bench
#else
namespace eider::bench {
const Probes* avx2_probes() {
  return nullptr;
}
}  // namespace eider::bench
#endif
