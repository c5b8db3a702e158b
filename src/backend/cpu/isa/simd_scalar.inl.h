// The vector vocabulary of the kernels for any CPU: 4 lanes, as vectors of the compilers' own, which become
// the instructions of the baseline (SSE2 on x86-64) or plain loops where there are none. What each function
// does: simd_avx512.inl.h.

inline constexpr int kLanes = 4;
inline constexpr int kAccumulators = 4;
inline constexpr int kOpenedTokens = 0;  // for the time to compile
inline constexpr int kSignedOffset = 0;
inline constexpr bool kSmallCodesAreCheaper = false;
template <int bits>
inline constexpr int kDotGroups = 1;

using Float4 = float __attribute__((vector_size(16)));
using Int4 = std::int32_t __attribute__((vector_size(16)));
using Short8 = std::int16_t __attribute__((vector_size(16)));
using Word8 = std::uint16_t __attribute__((vector_size(16)));

struct Floats {
  Float4 v;
};
struct Ints {
  Int4 v;
};
struct Codes {
  Word8 v;
};

template <ProductRule rule, int tokens>
inline constexpr int kVectors = tokens == 1 ? 4 : 2;

/// {make(0), make(1), make(2), make(3)}
template <class Vector, class Make>
EIDER_ALWAYS_INLINE Vector lanes_of(Make make) {
  return {decltype(Vector::v){make(0), make(1), make(2), make(3)}};
}

EIDER_ALWAYS_INLINE Floats load(const float* from) {
  Floats a;
  __builtin_memcpy(&a, from, sizeof a);
  return a;
}
EIDER_ALWAYS_INLINE void store(float* to, Floats a) {
  __builtin_memcpy(to, &a, sizeof a);
}
EIDER_ALWAYS_INLINE Floats splat(float value) {
  return {Float4{value, value, value, value}};
}
EIDER_ALWAYS_INLINE Floats operator+(Floats a, Floats b) {
  return {a.v + b.v};
}
EIDER_ALWAYS_INLINE Floats operator*(Floats a, Floats b) {
  return {a.v * b.v};
}
EIDER_ALWAYS_INLINE Floats fma(Floats a, Floats b, Floats c) {
  return lanes_of<Floats>([&](int i) __attribute__((always_inline)) {
    return __builtin_fmaf(a.v[i], b.v[i], c.v[i]);
  });
}
EIDER_ALWAYS_INLINE Floats negative_fma(Floats a, Floats b, Floats c) {
  return fma({-a.v}, b, c);
}
EIDER_ALWAYS_INLINE Floats to_floats(Ints a) {
  return {__builtin_convertvector(a.v, Float4)};
}
EIDER_ALWAYS_INLINE Floats load_elements(const F32::Block* from) {
  return load(&from->value);
}
EIDER_ALWAYS_INLINE Floats load_elements(const F16::Block* from) {
  return lanes_of<Floats>([&](int i) __attribute__((always_inline)) { return half_to_float(from[i].half); });
}
EIDER_ALWAYS_INLINE Floats load_elements(const BF16::Block* from) {
  return lanes_of<Floats>([&](int i)
                              __attribute__((always_inline)) { return bfloat16_to_float(from[i].upper); });
}
EIDER_ALWAYS_INLINE Ints splat_int(std::int32_t value) {
  return {Int4{value, value, value, value}};
}
EIDER_ALWAYS_INLINE Ints operator+(Ints a, Ints b) {
  return {a.v + b.v};
}
EIDER_ALWAYS_INLINE Ints operator*(Ints a, Ints b) {
  return {a.v * b.v};
}
template <int count>
EIDER_ALWAYS_INLINE Ints low_bits(Ints a) {
  return {a.v & ((1 << count) - 1)};
}
EIDER_ALWAYS_INLINE Ints load_ints(const std::byte* from) {
  Ints a;
  __builtin_memcpy(&a, from, sizeof a);
  return a;
}
EIDER_ALWAYS_INLINE void store_ints(std::byte* to, Ints a) {
  __builtin_memcpy(to, &a, sizeof a);
}
template <int bits>
EIDER_ALWAYS_INLINE Ints shift_left(Ints a) {
  return {a.v << bits};
}
template <int bits>
EIDER_ALWAYS_INLINE Ints shift_right(Ints a) {
  return {a.v >> bits};
}
EIDER_ALWAYS_INLINE Ints load_unsigned_bytes(const std::byte* from) {
  return lanes_of<Ints>([&](int i)
                            __attribute__((always_inline)) { return static_cast<std::int32_t>(from[i]); });
}
EIDER_ALWAYS_INLINE Ints load_signed_bytes(const std::byte* from) {
  return lanes_of<Ints>([&](int i) __attribute__((always_inline)) {
    return static_cast<std::int32_t>(static_cast<std::int8_t>(from[i]));
  });
}

EIDER_ALWAYS_INLINE Codes load_codes(const std::byte* from) {
  Codes a;
  __builtin_memcpy(&a, from, sizeof a);
  return a;
}
EIDER_ALWAYS_INLINE void store_codes(std::byte* to, Codes a) {
  __builtin_memcpy(to, &a, sizeof a);
}
EIDER_ALWAYS_INLINE Codes load_table(const std::int8_t (&bytes)[16]) {
  Codes a;
  __builtin_memcpy(&a, bytes, sizeof a);
  return a;
}
EIDER_ALWAYS_INLINE Codes lookup(Codes table, Codes places) {
  std::uint8_t values[16], at[16];
  __builtin_memcpy(values, &table, 16);
  __builtin_memcpy(at, &places, 16);
  for (std::uint8_t& byte : at) byte = values[byte];
  Codes found;
  __builtin_memcpy(&found, at, 16);
  return found;
}
EIDER_ALWAYS_INLINE Codes operator|(Codes a, Codes b) {
  return {a.v | b.v};
}
EIDER_ALWAYS_INLINE Codes add_to_bytes(Codes a, int n) {
  using Byte16 = std::uint8_t __attribute__((vector_size(16)));
  return {reinterpret_cast<Word8>(reinterpret_cast<Byte16>(a.v) + static_cast<std::uint8_t>(n))};
}
template <int shift, int mask>
EIDER_ALWAYS_INLINE Codes bits(Codes a) {
  Word8 shifted = a.v;
  if constexpr (shift > 0) shifted = a.v >> shift;
  if constexpr (shift < 0) shifted = a.v << -shift;
  return {shifted & static_cast<std::uint16_t>(mask * 0x0101)};
}
EIDER_ALWAYS_INLINE Codes prepare_signed(Codes a) {
  return a;
}
/// The upper and the lower byte of each 16 bits are multiplied apart, whichever comes first in memory; two
/// products fit 16 bits: 2 * 128 * 127 at most.
EIDER_ALWAYS_INLINE Ints dot4_signed(Ints sum, Codes codes, const std::int8_t* x) {
  std::int32_t word;
  __builtin_memcpy(&word, x, 4);
  const Short8 four = reinterpret_cast<Short8>(splat_int(word).v);
  const Short8 code = reinterpret_cast<Short8>(codes.v);
  const Short8 pairs = (code >> 8) * (four >> 8) + ((code << 8) >> 8) * ((four << 8) >> 8);
  const Int4 two_pairs = reinterpret_cast<Int4>(pairs);
  return {sum.v + (two_pairs >> 16) + ((two_pairs << 16) >> 16)};
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
  return sum + a * scale;
}
EIDER_ALWAYS_INLINE Ints scale_words(Ints scale) {
  return scale;
}
template <int groups>
EIDER_ALWAYS_INLINE Ints scaled_dot(Ints sum, const Codes (&codes)[groups], const std::int8_t* x, Ints begin,
                                    Ints scale) {
  return {sum.v + dot({(begin.v << 16) >> 16}, codes, x).v * scale.v};
}
EIDER_ALWAYS_INLINE Ints load_byte_pairs(const std::byte* from) {
  return lanes_of<Ints>([&](int i) __attribute__((always_inline)) {
    return static_cast<std::int32_t>(from[2 * i]) | static_cast<std::int32_t>(from[2 * i + 1]) << 16;
  });
}
EIDER_ALWAYS_INLINE Ints dot2(Ints sum, Ints pairs, const std::int16_t* x) {
  return {sum.v + (pairs.v & 0xffff) * x[0] + (pairs.v >> 16) * x[1]};
}

using Bits4 = std::uint32_t __attribute__((vector_size(16)));

/// Halves of 16 bits as upper halves of floats, of which those in `mask` count: columns 0 and 2, and 1 and 3.
EIDER_ALWAYS_INLINE void float_halves(Word8 even, Word8 odd, std::uint32_t mask, Floats (&values)[4]) {
  const Bits4 e = reinterpret_cast<Bits4>(even), o = reinterpret_cast<Bits4>(odd);
  values[0].v = reinterpret_cast<Float4>(e << 16 & mask);
  values[1].v = reinterpret_cast<Float4>(o << 16 & mask);
  values[2].v = reinterpret_cast<Float4>(e & mask);
  values[3].v = reinterpret_cast<Float4>(o & mask);
}
EIDER_ALWAYS_INLINE void fp8_values(Codes codes, Floats (&values)[4]) {
  const Short8 both = reinterpret_cast<Short8>(codes.v);
  float_halves(reinterpret_cast<Word8>((both << 8) >> 4), reinterpret_cast<Word8>(both >> 4), 0x87f00000u,
               values);
}
EIDER_ALWAYS_INLINE void fp9_values(Codes magnitudes, Codes& signs, Floats (&values)[4]) {
  constexpr std::uint16_t kSign = 0x8000, kMagnitude = 0x0ff0;
  const Word8 both = magnitudes.v, next = signs.v << 1;
  float_halves((both << 4 & kMagnitude) | (signs.v & kSign), (both >> 4 & kMagnitude) | (next & kSign),
               0xffff0000u, values);
  signs.v = next << 1;
}
