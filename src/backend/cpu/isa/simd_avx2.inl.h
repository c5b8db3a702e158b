// The vector vocabulary of the kernels for AVX2 with FMA and F16C, and AVX-VNNI where the file is compiled
// for it: 8 lanes. What each function does: simd_avx512.inl.h.

inline constexpr int kLanes = 8;
inline constexpr int kAccumulators = 12;
inline constexpr int kOpenedTokens = 4;
#if defined(__AVXVNNI__)
inline constexpr int kSignedOffset = 128;
inline constexpr bool kSmallCodesAreCheaper = false;
#else
inline constexpr int kSignedOffset = 0;  // sums of two products with codes to 255 would not fit 16 bits
inline constexpr bool kSmallCodesAreCheaper = true;
#endif

struct Floats {
  __m256 v;
};
struct Ints {
  __m256i v;
};
struct Codes {
  __m256i v;
};

template <ProductRule rule, int tokens>
inline constexpr int kVectors = tokens == 1 ? 4 : 2;
#if defined(__AVXVNNI__)
template <int bits>
inline constexpr int kDotGroups = 1;
#else
template <int bits>
inline constexpr int kDotGroups = bits <= 5   ? 4
                                  : bits == 6 ? 2
                                              : 1;  // 4 groups of 5 bits: 8 * 31 * 127
#endif

EIDER_ALWAYS_INLINE Floats load(const float* from) {
  return {_mm256_loadu_ps(from)};
}
EIDER_ALWAYS_INLINE void store(float* to, Floats a) {
  _mm256_storeu_ps(to, a.v);
}
EIDER_ALWAYS_INLINE Floats splat(float value) {
  return {_mm256_set1_ps(value)};
}
EIDER_ALWAYS_INLINE Floats operator+(Floats a, Floats b) {
  return {_mm256_add_ps(a.v, b.v)};
}
EIDER_ALWAYS_INLINE Floats operator*(Floats a, Floats b) {
  return {_mm256_mul_ps(a.v, b.v)};
}
EIDER_ALWAYS_INLINE Floats fma(Floats a, Floats b, Floats c) {
  return {_mm256_fmadd_ps(a.v, b.v, c.v)};
}
EIDER_ALWAYS_INLINE Floats negative_fma(Floats a, Floats b, Floats c) {
  return {_mm256_fnmadd_ps(a.v, b.v, c.v)};
}
EIDER_ALWAYS_INLINE Floats to_floats(Ints a) {
  return {_mm256_cvtepi32_ps(a.v)};
}
EIDER_ALWAYS_INLINE Floats load_elements(const F32::Block* from) {
  return {_mm256_loadu_ps(&from->value)};
}
EIDER_ALWAYS_INLINE Floats load_elements(const F16::Block* from) {
  return {_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)))};
}
EIDER_ALWAYS_INLINE Floats load_elements(const BF16::Block* from) {
  const __m256i wide = _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
  return {_mm256_castsi256_ps(_mm256_slli_epi32(wide, 16))};
}

EIDER_ALWAYS_INLINE Ints load_ints(const std::byte* from) {
  return {_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from))};
}
EIDER_ALWAYS_INLINE void store_ints(std::byte* to, Ints a) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), a.v);
}
template <int bits>
EIDER_ALWAYS_INLINE Ints shift_right(Ints a) {
  return {_mm256_srai_epi32(a.v, bits)};
}
template <int bits>
EIDER_ALWAYS_INLINE Ints shift_left(Ints a) {
  return {_mm256_slli_epi32(a.v, bits)};
}
EIDER_ALWAYS_INLINE Ints splat_int(std::int32_t value) {
  return {_mm256_set1_epi32(value)};
}
EIDER_ALWAYS_INLINE Ints operator+(Ints a, Ints b) {
  return {_mm256_add_epi32(a.v, b.v)};
}
EIDER_ALWAYS_INLINE Ints operator*(Ints a, Ints b) {
  return {_mm256_mullo_epi32(a.v, b.v)};
}
template <int count>
EIDER_ALWAYS_INLINE Ints low_bits(Ints a) {
  return {_mm256_and_si256(a.v, _mm256_set1_epi32((1 << count) - 1))};
}
EIDER_ALWAYS_INLINE Ints load_unsigned_bytes(const std::byte* from) {
  return {_mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from)))};
}
EIDER_ALWAYS_INLINE Ints load_signed_bytes(const std::byte* from) {
  return {_mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from)))};
}

EIDER_ALWAYS_INLINE Codes load_codes(const std::byte* from) {
  return {_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from))};
}
EIDER_ALWAYS_INLINE void store_codes(std::byte* to, Codes a) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), a.v);
}
EIDER_ALWAYS_INLINE Codes load_table(const std::int8_t (&bytes)[16]) {
  return {_mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes)))};
}
EIDER_ALWAYS_INLINE Codes lookup(Codes table, Codes places) {
  return {_mm256_shuffle_epi8(table.v, places.v)};
}
EIDER_ALWAYS_INLINE Codes operator|(Codes a, Codes b) {
  return {_mm256_or_si256(a.v, b.v)};
}
EIDER_ALWAYS_INLINE Codes add_to_bytes(Codes a, int n) {
  return {_mm256_add_epi8(a.v, _mm256_set1_epi8(static_cast<char>(n)))};
}
template <int shift, int mask>
EIDER_ALWAYS_INLINE Codes bits(Codes a) {
  __m256i shifted = a.v;
  if constexpr (shift > 0) shifted = _mm256_srli_epi16(a.v, shift);
  if constexpr (shift < 0) shifted = _mm256_slli_epi16(a.v, -shift);
  return {_mm256_and_si256(shifted, _mm256_set1_epi8(mask))};
}
EIDER_ALWAYS_INLINE __m256i four_codes(const std::int8_t* x) {
  std::int32_t word;
  __builtin_memcpy(&word, x, 4);
  return _mm256_set1_epi32(word);
}
EIDER_ALWAYS_INLINE Ints word_scale(Ints scale) {
  return {_mm256_and_si256(scale.v, _mm256_set1_epi32(0xffff))};
}
EIDER_ALWAYS_INLINE Ints add_word_product(Ints sum, Ints a, Ints scale) {
  return {_mm256_add_epi32(sum.v, _mm256_madd_epi16(a.v, scale.v))};
}
#if defined(__AVXVNNI__)
template <int groups>
EIDER_ALWAYS_INLINE Ints dot(Ints sum, const Codes (&codes)[groups], const std::int8_t* x) {
  for (int i = 0; i < groups; ++i) sum.v = _mm256_dpbusd_avx_epi32(sum.v, codes[i].v, four_codes(x + 4 * i));
  return sum;
}
EIDER_ALWAYS_INLINE Ints scale_words(Ints scale) {
  return {_mm256_and_si256(scale.v, _mm256_set1_epi32(0xffff))};
}
template <int groups>
EIDER_ALWAYS_INLINE Ints scaled_dot(Ints sum, const Codes (&codes)[groups], const std::int8_t* x, Ints begin,
                                    Ints scale) {
  return {_mm256_dpwssd_avx_epi32(sum.v, dot(begin, codes, x).v, scale.v)};
}
#else
/// begin + codes . x in two halves of 16 bits: columns 0 and 1, and 2 and 3, of each group.
template <int groups>
EIDER_ALWAYS_INLINE __m256i half_dots(__m256i begin, const Codes (&codes)[groups], const std::int8_t* x) {
  for (int i = 0; i < groups; ++i)
    begin = _mm256_add_epi16(begin, _mm256_maddubs_epi16(codes[i].v, four_codes(x + 4 * i)));
  return begin;
}
template <int groups>
EIDER_ALWAYS_INLINE Ints dot(Ints sum, const Codes (&codes)[groups], const std::int8_t* x) {
  const __m256i halves = half_dots(_mm256_setzero_si256(), codes, x);
  return {_mm256_add_epi32(sum.v, _mm256_madd_epi16(halves, _mm256_set1_epi16(1)))};
}
EIDER_ALWAYS_INLINE Ints scale_words(Ints scale) {
  const __m256i low = _mm256_and_si256(scale.v, _mm256_set1_epi32(0xffff));
  return {_mm256_or_si256(low, _mm256_slli_epi32(scale.v, 16))};
}
/// Each half fits 16 bits too: an unsigned code less its offset is as far from 0 as the offset at most.
template <int groups>
EIDER_ALWAYS_INLINE Ints scaled_dot(Ints sum, const Codes (&codes)[groups], const std::int8_t* x, Ints begin,
                                    Ints scale) {
  return {_mm256_add_epi32(sum.v, _mm256_madd_epi16(half_dots(begin.v, codes, x), scale.v))};
}
#endif
#if defined(__AVXVNNI__)
EIDER_ALWAYS_INLINE Codes prepare_signed(Codes a) {
  return {_mm256_xor_si256(a.v, _mm256_set1_epi8(-128))};
}
EIDER_ALWAYS_INLINE Ints dot4_signed(Ints sum, Codes codes, const std::int8_t* x) {
  return {_mm256_dpbusd_avx_epi32(sum.v, codes.v, four_codes(x))};
}
#else
EIDER_ALWAYS_INLINE Codes prepare_signed(Codes a) {
  return a;
}
EIDER_ALWAYS_INLINE Ints dot4_signed(Ints sum, Codes codes, const std::int8_t* x) {
  // |code| * (sign of code) x; -128 has the magnitude 128 as an unsigned byte: 2 * 128 * 127 fits 16 bits.
  const __m256i magnitudes = _mm256_abs_epi8(codes.v);
  const __m256i signed_x = _mm256_sign_epi8(four_codes(x), codes.v);
  const __m256i halves = _mm256_maddubs_epi16(magnitudes, signed_x);
  return {_mm256_add_epi32(sum.v, _mm256_madd_epi16(halves, _mm256_set1_epi16(1)))};
}
#endif
EIDER_ALWAYS_INLINE Ints load_byte_pairs(const std::byte* from) {
  return {_mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)))};
}
EIDER_ALWAYS_INLINE Ints dot2(Ints sum, Ints pairs, const std::int16_t* x) {
  std::int32_t word;
  __builtin_memcpy(&word, x, 4);
  return {_mm256_add_epi32(sum.v, _mm256_madd_epi16(pairs.v, _mm256_set1_epi32(word)))};
}

EIDER_ALWAYS_INLINE void fp8_values(Codes codes, Floats (&values)[4]) {
  const __m256i mask = _mm256_set1_epi32(static_cast<int>(0x87f00000u));
  const __m256i even = _mm256_maddubs_epi16(_mm256_set1_epi16(16), codes.v);
  const __m256i odd = _mm256_srai_epi16(codes.v, 4);
  values[0].v = _mm256_castsi256_ps(_mm256_and_si256(_mm256_slli_epi32(even, 16), mask));
  values[1].v = _mm256_castsi256_ps(_mm256_and_si256(_mm256_slli_epi32(odd, 16), mask));
  values[2].v = _mm256_castsi256_ps(_mm256_and_si256(even, mask));
  values[3].v = _mm256_castsi256_ps(_mm256_and_si256(odd, mask));
}
EIDER_ALWAYS_INLINE void fp9_values(Codes magnitudes, Codes& signs, Floats (&values)[4]) {
  const __m256i sign = _mm256_set1_epi16(-32768), upper = _mm256_set1_epi32(static_cast<int>(0xffff0000u));
  const __m256i even = _mm256_or_si256(_mm256_maddubs_epi16(magnitudes.v, _mm256_set1_epi16(16)),
                                       _mm256_and_si256(signs.v, sign));
  signs.v = _mm256_add_epi16(signs.v, signs.v);
  const __m256i odd = _mm256_or_si256(_mm256_maddubs_epi16(magnitudes.v, _mm256_set1_epi16(16 << 8)),
                                      _mm256_and_si256(signs.v, sign));
  signs.v = _mm256_add_epi16(signs.v, signs.v);
  values[0].v = _mm256_castsi256_ps(_mm256_slli_epi32(even, 16));
  values[1].v = _mm256_castsi256_ps(_mm256_slli_epi32(odd, 16));
  values[2].v = _mm256_castsi256_ps(_mm256_and_si256(even, upper));
  values[3].v = _mm256_castsi256_ps(_mm256_and_si256(odd, upper));
}
