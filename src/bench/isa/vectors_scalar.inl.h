// Any CPU: the compiler makes of these vectors what its architecture has always had, such as SSE2.

using Floats = float __attribute__((vector_size(16)));
using Ints = std::int32_t __attribute__((vector_size(16)));
constexpr int kFloatLanes = 4, kDotProducts = 0;
constexpr int kChains = 12, kDotChains = 0;

EIDER_ALWAYS_INLINE Floats splat(float value) {
  return Floats{value, value, value, value};
}
EIDER_ALWAYS_INLINE Floats fma(Floats a, Floats b, Floats c) {
  return a * b + c;
}
EIDER_ALWAYS_INLINE Ints splat_bytes(std::int8_t value) {
  return Ints{value, value, value, value};
}
EIDER_ALWAYS_INLINE Ints dot(Ints sum, Ints, Ints) {
  return sum;
}
