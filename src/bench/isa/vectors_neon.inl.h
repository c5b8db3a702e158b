// NEON, and the dot product instructions of ARMv8.2 where the file is compiled for them.

using Floats = float32x4_t;
using Ints = int32x4_t;
constexpr int kFloatLanes = 4, kDotProducts = 16;
constexpr int kChains = 16, kDotChains = 16;

EIDER_ALWAYS_INLINE Floats splat(float value) {
  return vdupq_n_f32(value);
}
EIDER_ALWAYS_INLINE Floats fma(Floats a, Floats b, Floats c) {
  return vfmaq_f32(c, a, b);
}
EIDER_ALWAYS_INLINE Ints splat_bytes(std::int8_t value) {
  return vreinterpretq_s32_s8(vdupq_n_s8(value));
}
EIDER_ALWAYS_INLINE Ints dot(Ints sum, Ints codes, Ints x) {
#if defined(__ARM_FEATURE_DOTPROD)
  return vdotq_s32(sum, vreinterpretq_s8_s32(codes), vreinterpretq_s8_s32(x));
#else
  asm volatile("" : "+w"(codes));  // or the products, always the same, would leave the loop
  const int8x16_t a = vreinterpretq_s8_s32(codes), b = vreinterpretq_s8_s32(x);
  const int16x8_t low = vmull_s8(vget_low_s8(a), vget_low_s8(b));
  return vpadalq_s16(sum, vmlal_high_s8(low, a, b));
#endif
}
