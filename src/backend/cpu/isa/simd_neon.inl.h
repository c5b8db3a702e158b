// The vector vocabulary of the kernels for 64-bit ARM, with the dot product instructions where the file is
// compiled for them: 4 lanes. What each function does: simd_avx512.inl.h.

inline constexpr int kLanes = 4;
inline constexpr int kAccumulators = 24;
inline constexpr int kOpenedTokens = 4;
inline constexpr int kSignedOffset = 0;
inline constexpr bool kSmallCodesAreCheaper = false;
template <int bits>
inline constexpr int kDotGroups = 1;

struct Floats {
  float32x4_t v;
};
struct Ints {
  int32x4_t v;
};
struct Codes {
  uint8x16_t v;
};

template <ProductRule rule, int tokens>
inline constexpr int kVectors = (tokens == 1   ? 8
                                 : tokens <= 4 ? 4
                                               : 2) /
                                (rule == ProductRule::kInteger256 ? 2 : 1);

EIDER_ALWAYS_INLINE Floats load(const float* from) {
  return {vld1q_f32(from)};
}
EIDER_ALWAYS_INLINE void store(float* to, Floats a) {
  vst1q_f32(to, a.v);
}
EIDER_ALWAYS_INLINE Floats splat(float value) {
  return {vdupq_n_f32(value)};
}
EIDER_ALWAYS_INLINE Floats operator+(Floats a, Floats b) {
  return {vaddq_f32(a.v, b.v)};
}
EIDER_ALWAYS_INLINE Floats operator*(Floats a, Floats b) {
  return {vmulq_f32(a.v, b.v)};
}
EIDER_ALWAYS_INLINE Floats fma(Floats a, Floats b, Floats c) {
  return {vfmaq_f32(c.v, a.v, b.v)};
}
EIDER_ALWAYS_INLINE Floats negative_fma(Floats a, Floats b, Floats c) {
  return {vfmsq_f32(c.v, a.v, b.v)};
}
EIDER_ALWAYS_INLINE Floats to_floats(Ints a) {
  return {vcvtq_f32_s32(a.v)};
}
EIDER_ALWAYS_INLINE Floats load_elements(const F32::Block* from) {
  return {vld1q_f32(&from->value)};
}
EIDER_ALWAYS_INLINE Floats load_elements(const F16::Block* from) {
  return {vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(&from->half)))};
}
EIDER_ALWAYS_INLINE Floats load_elements(const BF16::Block* from) {
  return {vreinterpretq_f32_u32(vshlq_n_u32(vmovl_u16(vld1_u16(&from->upper)), 16))};
}
EIDER_ALWAYS_INLINE Ints splat_int(std::int32_t value) {
  return {vdupq_n_s32(value)};
}
EIDER_ALWAYS_INLINE Ints operator+(Ints a, Ints b) {
  return {vaddq_s32(a.v, b.v)};
}
EIDER_ALWAYS_INLINE Ints operator*(Ints a, Ints b) {
  return {vmulq_s32(a.v, b.v)};
}
template <int count>
EIDER_ALWAYS_INLINE Ints low_bits(Ints a) {
  return {vandq_s32(a.v, vdupq_n_s32((1 << count) - 1))};
}
EIDER_ALWAYS_INLINE Ints load_ints(const std::byte* from) {
  return {vld1q_s32(reinterpret_cast<const std::int32_t*>(from))};
}
EIDER_ALWAYS_INLINE void store_ints(std::byte* to, Ints a) {
  vst1q_s32(reinterpret_cast<std::int32_t*>(to), a.v);
}
template <int bits>
EIDER_ALWAYS_INLINE Ints shift_left(Ints a) {
  return {vshlq_n_s32(a.v, bits)};
}
template <int bits>
EIDER_ALWAYS_INLINE Ints shift_right(Ints a) {
  if constexpr (bits == 0)
    return a;
  else
    return {vshrq_n_s32(a.v, bits)};
}
/// 4 bytes, in the lower half.
EIDER_ALWAYS_INLINE uint8x8_t load_bytes(const std::byte* from) {
  std::uint32_t word;
  __builtin_memcpy(&word, from, 4);
  return vreinterpret_u8_u32(vdup_n_u32(word));
}
EIDER_ALWAYS_INLINE Ints load_unsigned_bytes(const std::byte* from) {
  return {vreinterpretq_s32_u32(vmovl_u16(vget_low_u16(vmovl_u8(load_bytes(from)))))};
}
EIDER_ALWAYS_INLINE Ints load_signed_bytes(const std::byte* from) {
  return {vmovl_s16(vget_low_s16(vmovl_s8(vreinterpret_s8_u8(load_bytes(from)))))};
}

EIDER_ALWAYS_INLINE Codes load_codes(const std::byte* from) {
  return {vld1q_u8(reinterpret_cast<const std::uint8_t*>(from))};
}
EIDER_ALWAYS_INLINE void store_codes(std::byte* to, Codes a) {
  vst1q_u8(reinterpret_cast<std::uint8_t*>(to), a.v);
}
EIDER_ALWAYS_INLINE Codes load_table(const std::int8_t (&bytes)[16]) {
  return {vreinterpretq_u8_s8(vld1q_s8(bytes))};
}
EIDER_ALWAYS_INLINE Codes lookup(Codes table, Codes places) {
  return {vqtbl1q_u8(table.v, places.v)};
}
EIDER_ALWAYS_INLINE Codes operator|(Codes a, Codes b) {
  return {vorrq_u8(a.v, b.v)};
}
EIDER_ALWAYS_INLINE Codes add_to_bytes(Codes a, int n) {
  return {vaddq_u8(a.v, vdupq_n_u8(static_cast<std::uint8_t>(n)))};
}
template <int shift, int mask>
EIDER_ALWAYS_INLINE Codes bits(Codes a) {
  uint8x16_t shifted = a.v;
  if constexpr (shift > 0) shifted = vshrq_n_u8(a.v, shift);
  if constexpr (shift < 0) shifted = vshlq_n_u8(a.v, -shift);
  return {vandq_u8(shifted, vdupq_n_u8(mask))};
}
EIDER_ALWAYS_INLINE Codes prepare_signed(Codes a) {
  return a;
}
EIDER_ALWAYS_INLINE Ints dot4_signed(Ints sum, Codes codes, const std::int8_t* x) {
  std::int32_t word;
  __builtin_memcpy(&word, x, 4);
  const int8x16_t four = vreinterpretq_s8_s32(vdupq_n_s32(word));
  const int8x16_t code = vreinterpretq_s8_u8(codes.v);
#if defined(__ARM_FEATURE_DOTPROD)
  return {vdotq_s32(sum.v, code, four)};
#else
  // Sums of two products fit 16 bits: 2 * 128 * 127 at most.
  const int16x8_t low = vmull_s8(vget_low_s8(code), vget_low_s8(four));
  const int16x8_t high = vmull_high_s8(code, four);
  return {vpadalq_s16(sum.v, vpaddq_s16(low, high))};
#endif
}
template <int groups>
EIDER_ALWAYS_INLINE Ints dot(Ints sum, const Codes (&codes)[groups], const std::int8_t* x) {
  for (int i = 0; i < groups; ++i) sum = dot4_signed(sum, codes[i], x + 4 * i);
  return sum;
}
EIDER_ALWAYS_INLINE Ints word_scale(Ints scale) {
  return scale;
}
EIDER_ALWAYS_INLINE Ints add_word_product(Ints sum, Ints a, Ints scale) {
  return {vmlaq_s32(sum.v, a.v, scale.v)};
}
EIDER_ALWAYS_INLINE Ints scale_words(Ints scale) {
  return scale;
}
template <int groups>
EIDER_ALWAYS_INLINE Ints scaled_dot(Ints sum, const Codes (&codes)[groups], const std::int8_t* x, Ints begin,
                                    Ints scale) {
  const Ints extended{vshrq_n_s32(vshlq_n_s32(begin.v, 16), 16)};
  return {vmlaq_s32(sum.v, dot(extended, codes, x).v, scale.v)};
}
EIDER_ALWAYS_INLINE Ints load_byte_pairs(const std::byte* from) {
  return {vreinterpretq_s32_u16(vmovl_u8(vld1_u8(reinterpret_cast<const std::uint8_t*>(from))))};
}
EIDER_ALWAYS_INLINE Ints dot2(Ints sum, Ints pairs, const std::int16_t* x) {
  std::int32_t word;
  __builtin_memcpy(&word, x, 4);
  const int16x8_t a = vreinterpretq_s16_s32(pairs.v);
  const int16x8_t b = vreinterpretq_s16_s32(vdupq_n_s32(word));
  const int32x4_t low = vmull_s16(vget_low_s16(a), vget_low_s16(b));
  const int32x4_t high = vmull_high_s16(a, b);
  return {vaddq_s32(sum.v, vpaddq_s32(low, high))};
}

EIDER_ALWAYS_INLINE void fp8_values(Codes codes, Floats (&values)[4]) {
  const uint32x4_t mask = vdupq_n_u32(0x87f00000u);
  const int16x8_t both = vreinterpretq_s16_u8(codes.v);
  const uint32x4_t even = vreinterpretq_u32_s16(vshrq_n_s16(vshlq_n_s16(both, 8), 4));
  const uint32x4_t odd = vreinterpretq_u32_s16(vshrq_n_s16(both, 4));
  values[0].v = vreinterpretq_f32_u32(vandq_u32(vshlq_n_u32(even, 16), mask));
  values[1].v = vreinterpretq_f32_u32(vandq_u32(vshlq_n_u32(odd, 16), mask));
  values[2].v = vreinterpretq_f32_u32(vandq_u32(even, mask));
  values[3].v = vreinterpretq_f32_u32(vandq_u32(odd, mask));
}
EIDER_ALWAYS_INLINE void fp9_values(Codes magnitudes, Codes& signs, Floats (&values)[4]) {
  // Each half: the sign, and the magnitude inserted from bit 4 on; what lies around it is masked.
  const uint32x4_t mask = vdupq_n_u32(0x8ff00000u);
  const uint16x8_t sign = vdupq_n_u16(0x8000), both = vreinterpretq_u16_u8(magnitudes.v);
  uint16x8_t left = vreinterpretq_u16_u8(signs.v);
  const uint32x4_t even = vreinterpretq_u32_u16(vbslq_u16(sign, left, vshlq_n_u16(both, 4)));
  left = vaddq_u16(left, left);
  const uint32x4_t odd = vreinterpretq_u32_u16(vbslq_u16(sign, left, vshrq_n_u16(both, 4)));
  left = vaddq_u16(left, left);
  signs.v = vreinterpretq_u8_u16(left);
  values[0].v = vreinterpretq_f32_u32(vandq_u32(vshlq_n_u32(even, 16), mask));
  values[1].v = vreinterpretq_f32_u32(vandq_u32(vshlq_n_u32(odd, 16), mask));
  values[2].v = vreinterpretq_f32_u32(vandq_u32(even, mask));
  values[3].v = vreinterpretq_f32_u32(vandq_u32(odd, mask));
}
