// The vector vocabulary of the kernels for AVX-512 (F, BW, DQ, VL) with VNNI: 16 lanes.

inline constexpr int kLanes = 16;
/// Vectors of sums that attention keeps in registers beside their operands.
inline constexpr int kAccumulators = 24;
/// Most tokens that opened units are multiplied with at a time; 0: one alone, and only where a format must be
/// opened.
inline constexpr int kOpenedTokens = 8;
/// What dot4_signed() adds to each signed code: its sum is too large by this times the sum of x.
inline constexpr int kSignedOffset = 128;
/// Whether products of unsigned codes below 128 take fewer instructions than those of signed ones.
inline constexpr bool kSmallCodesAreCheaper = false;

struct Floats {
  __m512 v;
};
struct Ints {
  __m512i v;
};
/// 4 codes of each of the lanes' rows.
struct Codes {
  __m512i v;
};

/// Vectors of rows that a kernel keeps in registers for `tokens` tokens.
template <ProductRule rule, int tokens>
inline constexpr int kVectors = 2;
/// Groups of codes of `bits` bits that one dot() takes.
template <int bits>
inline constexpr int kDotGroups = 1;

EIDER_ALWAYS_INLINE Floats load(const float* from) {
  return {_mm512_loadu_ps(from)};
}
EIDER_ALWAYS_INLINE void store(float* to, Floats a) {
  _mm512_storeu_ps(to, a.v);
}
EIDER_ALWAYS_INLINE Floats splat(float value) {
  return {_mm512_set1_ps(value)};
}
EIDER_ALWAYS_INLINE Floats operator+(Floats a, Floats b) {
  return {_mm512_add_ps(a.v, b.v)};
}
EIDER_ALWAYS_INLINE Floats operator*(Floats a, Floats b) {
  return {_mm512_mul_ps(a.v, b.v)};
}
EIDER_ALWAYS_INLINE Floats fma(Floats a, Floats b, Floats c) {
  return {_mm512_fmadd_ps(a.v, b.v, c.v)};
}
/// fma(-a, b, c)
EIDER_ALWAYS_INLINE Floats negative_fma(Floats a, Floats b, Floats c) {
  return {_mm512_fnmadd_ps(a.v, b.v, c.v)};
}
EIDER_ALWAYS_INLINE Floats to_floats(Ints a) {
  return {_mm512_cvtepi32_ps(a.v)};
}
EIDER_ALWAYS_INLINE Floats load_elements(const F32::Block* from) {
  return {_mm512_loadu_ps(&from->value)};
}
EIDER_ALWAYS_INLINE Floats load_elements(const F16::Block* from) {
  return {_mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)))};
}
EIDER_ALWAYS_INLINE Floats load_elements(const BF16::Block* from) {
  const __m512i wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
  return {_mm512_castsi512_ps(_mm512_slli_epi32(wide, 16))};
}

EIDER_ALWAYS_INLINE Ints load_ints(const std::byte* from) {
  return {_mm512_loadu_si512(from)};
}
EIDER_ALWAYS_INLINE void store_ints(std::byte* to, Ints a) {
  _mm512_storeu_si512(to, a.v);
}
template <int bits>
EIDER_ALWAYS_INLINE Ints shift_right(Ints a) {
  return {_mm512_srai_epi32(a.v, bits)};
}
template <int bits>
EIDER_ALWAYS_INLINE Ints shift_left(Ints a) {
  return {_mm512_slli_epi32(a.v, bits)};
}
EIDER_ALWAYS_INLINE Ints splat_int(std::int32_t value) {
  return {_mm512_set1_epi32(value)};
}
EIDER_ALWAYS_INLINE Ints operator+(Ints a, Ints b) {
  return {_mm512_add_epi32(a.v, b.v)};
}
EIDER_ALWAYS_INLINE Ints operator*(Ints a, Ints b) {
  return {_mm512_mullo_epi32(a.v, b.v)};
}
template <int count>
EIDER_ALWAYS_INLINE Ints low_bits(Ints a) {
  return {_mm512_and_si512(a.v, _mm512_set1_epi32((1 << count) - 1))};
}
EIDER_ALWAYS_INLINE Ints load_unsigned_bytes(const std::byte* from) {
  return {_mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)))};
}
EIDER_ALWAYS_INLINE Ints load_signed_bytes(const std::byte* from) {
  return {_mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)))};
}

EIDER_ALWAYS_INLINE Codes load_codes(const std::byte* from) {
  return {_mm512_loadu_si512(from)};
}
EIDER_ALWAYS_INLINE void store_codes(std::byte* to, Codes a) {
  _mm512_storeu_si512(to, a.v);
}
/// A table of 16 bytes for lookup().
EIDER_ALWAYS_INLINE Codes load_table(const std::int8_t (&bytes)[16]) {
  return {_mm512_broadcast_i32x4(_mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes)))};
}
/// The bytes of `table` at `places`, each in 0..15.
EIDER_ALWAYS_INLINE Codes lookup(Codes table, Codes places) {
  return {_mm512_shuffle_epi8(table.v, places.v)};
}
EIDER_ALWAYS_INLINE Codes operator|(Codes a, Codes b) {
  return {_mm512_or_si512(a.v, b.v)};
}
/// Each byte + n, modulo 256.
EIDER_ALWAYS_INLINE Codes add_to_bytes(Codes a, int n) {
  return {_mm512_add_epi8(a.v, _mm512_set1_epi8(static_cast<char>(n)))};
}
/// (each byte >> shift) & mask; a negative shift is one to the left. Bits of a neighbour byte fall to the
/// mask.
template <int shift, int mask>
EIDER_ALWAYS_INLINE Codes bits(Codes a) {
  __m512i shifted = a.v;
  if constexpr (shift > 0) shifted = _mm512_srli_epi16(a.v, shift);
  if constexpr (shift < 0) shifted = _mm512_slli_epi16(a.v, -shift);
  return {_mm512_and_si512(shifted, _mm512_set1_epi8(mask))};
}
EIDER_ALWAYS_INLINE __m512i four_codes(const std::int8_t* x) {
  std::int32_t word;
  __builtin_memcpy(&word, x, 4);
  return _mm512_set1_epi32(word);
}
/// sum + codes . x, codes in 0..63, x: 4 for each group.
template <int groups>
EIDER_ALWAYS_INLINE Ints dot(Ints sum, const Codes (&codes)[groups], const std::int8_t* x) {
  for (int i = 0; i < groups; ++i) sum.v = _mm512_dpbusd_epi32(sum.v, codes[i].v, four_codes(x + 4 * i));
  return sum;
}
/// The same for the signed codes of one group, as prepare_signed() made them.
EIDER_ALWAYS_INLINE Codes prepare_signed(Codes a) {
  return {_mm512_xor_si512(a.v, _mm512_set1_epi8(-128))};
}
EIDER_ALWAYS_INLINE Ints dot4_signed(Ints sum, Codes codes, const std::int8_t* x) {
  return {_mm512_dpbusd_epi32(sum.v, codes.v, four_codes(x))};
}
/// Multipliers of 16 bits as scaled_dot() takes them.
EIDER_ALWAYS_INLINE Ints scale_words(Ints scale) {
  return {_mm512_and_si512(scale.v, _mm512_set1_epi32(0xffff))};
}
/// Multipliers of 16 bits as add_word_product() takes them.
EIDER_ALWAYS_INLINE Ints word_scale(Ints scale) {
  return scale_words(scale);
}
/// sum + a * scale, where `a` fits 16 bits.
EIDER_ALWAYS_INLINE Ints add_word_product(Ints sum, Ints a, Ints scale) {
  return {_mm512_dpwssd_epi32(sum.v, a.v, scale.v)};
}
/// sum + scale * (begin + codes . x), where the lower 16 bits of `begin` count and what is scaled fits 16.
template <int groups>
EIDER_ALWAYS_INLINE Ints scaled_dot(Ints sum, const Codes (&codes)[groups], const std::int8_t* x, Ints begin,
                                    Ints scale) {
  return {_mm512_dpwssd_epi32(sum.v, dot(begin, codes, x).v, scale.v)};
}
/// A row's two unsigned bytes as two numbers of 16 bits; `from`: [lane][2].
EIDER_ALWAYS_INLINE Ints load_byte_pairs(const std::byte* from) {
  return {_mm512_cvtepu8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)))};
}
/// sum + pairs . x[0..2)
EIDER_ALWAYS_INLINE Ints dot2(Ints sum, Ints pairs, const std::int16_t* x) {
  std::int32_t word;
  __builtin_memcpy(&word, x, 4);
  return {_mm512_dpwssd_epi32(sum.v, pairs.v, _mm512_set1_epi32(word))};
}

/// Of 4 columns of each lane's row: the values times 2^-120 of FP8 codes.
EIDER_ALWAYS_INLINE void fp8_values(Codes codes, Floats (&values)[4]) {
  const __m512i mask = _mm512_set1_epi32(static_cast<int>(0x87f00000u));
  // Halves of 16 bits with a code's sign in bit 15 and the rest from bit 4 on: columns 0 and 2, and 1 and 3.
  const __m512i even = _mm512_maddubs_epi16(_mm512_set1_epi16(16), codes.v);
  const __m512i odd = _mm512_srai_epi16(codes.v, 4);
  values[0].v = _mm512_castsi512_ps(_mm512_and_si512(_mm512_slli_epi32(even, 16), mask));
  values[1].v = _mm512_castsi512_ps(_mm512_and_si512(_mm512_slli_epi32(odd, 16), mask));
  values[2].v = _mm512_castsi512_ps(_mm512_and_si512(even, mask));
  values[3].v = _mm512_castsi512_ps(_mm512_and_si512(odd, mask));
}
/// The same of fp9, times 2^-117. The signs are the upper two bits of each half of `signs`, which loses them.
EIDER_ALWAYS_INLINE void fp9_values(Codes magnitudes, Codes& signs, Floats (&values)[4]) {
  constexpr int kOrSelected = 0xf8;  // a | (b & c)
  const __m512i sign = _mm512_set1_epi16(-32768), upper = _mm512_set1_epi32(static_cast<int>(0xffff0000u));
  const __m512i even = _mm512_ternarylogic_epi32(_mm512_maddubs_epi16(magnitudes.v, _mm512_set1_epi16(16)),
                                                 signs.v, sign, kOrSelected);
  signs.v = _mm512_add_epi16(signs.v, signs.v);
  const __m512i odd = _mm512_ternarylogic_epi32(
      _mm512_maddubs_epi16(magnitudes.v, _mm512_set1_epi16(16 << 8)), signs.v, sign, kOrSelected);
  signs.v = _mm512_add_epi16(signs.v, signs.v);
  values[0].v = _mm512_castsi512_ps(_mm512_slli_epi32(even, 16));
  values[1].v = _mm512_castsi512_ps(_mm512_slli_epi32(odd, 16));
  values[2].v = _mm512_castsi512_ps(_mm512_and_si512(even, upper));
  values[3].v = _mm512_castsi512_ps(_mm512_and_si512(odd, upper));
}
