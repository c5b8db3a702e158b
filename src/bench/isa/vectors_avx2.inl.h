// AVX2 with FMA, and AVX-VNNI where the file is compiled for it.

using Floats = __m256;
using Ints = __m256i;
constexpr int kFloatLanes = 8, kChains = 12;

EIDER_ALWAYS_INLINE Floats splat(float value) {
  return _mm256_set1_ps(value);
}
EIDER_ALWAYS_INLINE Floats fma(Floats a, Floats b, Floats c) {
  return _mm256_fmadd_ps(a, b, c);
}
EIDER_ALWAYS_INLINE Ints splat_bytes(std::int8_t value) {
  return _mm256_set1_epi8(value);
}

#if defined(__AVXVNNI__)
constexpr int kDotProducts = 32, kDotChains = 12;

EIDER_ALWAYS_INLINE Ints dot(Ints sum, Ints codes, Ints x) {
  return _mm256_dpbusd_avx_epi32(sum, codes, x);
}
#else
// As kernels of codes of few bits do it: products of four registers of bytes are added in 16 bits before they
// are widened.
constexpr int kDotProducts = 128, kDotChains = 6;

EIDER_ALWAYS_INLINE Ints dot(Ints sum, Ints codes, Ints x) {
  Ints halves = _mm256_setzero_si256();
  for (int i = 0; i < 4; ++i) {
    asm volatile("" : "+x"(codes));  // or the products, always the same, would leave the loop
    halves = _mm256_add_epi16(halves, _mm256_maddubs_epi16(codes, x));
  }
  return _mm256_add_epi32(sum, _mm256_madd_epi16(halves, _mm256_set1_epi16(1)));
}
#endif
