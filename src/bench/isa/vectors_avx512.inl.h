// AVX-512 with VNNI.

using Floats = __m512;
using Ints = __m512i;
constexpr int kFloatLanes = 16, kDotProducts = 64;
constexpr int kChains = 12, kDotChains = 12;

EIDER_ALWAYS_INLINE Floats splat(float value) {
  return _mm512_set1_ps(value);
}
EIDER_ALWAYS_INLINE Floats fma(Floats a, Floats b, Floats c) {
  return _mm512_fmadd_ps(a, b, c);
}
EIDER_ALWAYS_INLINE Ints splat_bytes(std::int8_t value) {
  return _mm512_set1_epi8(value);
}
EIDER_ALWAYS_INLINE Ints dot(Ints sum, Ints codes, Ints x) {
  return _mm512_dpbusd_epi32(sum, codes, x);
}
