// The probe of integer products, for instruction sets that have them. The file that includes it defines
// before:
//
//   Ints, kIntBytes        a vector register of 32-bit sums, and its bytes
//   splat_bytes(value)     all bytes the same
//   dot(sum, codes, x)     sum of each lane + the products of its 4 bytes
//   kDotChains             as kChains

inline std::int64_t int8_dot(std::int64_t rounds) {
  const Ints codes = splat_bytes(3);
  const Ints x = splat_bytes(5);
  Ints sum[kDotChains];
  for (int i = 0; i < kDotChains; ++i) sum[i] = splat_bytes(static_cast<char>(i));
  for (std::int64_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 16
    for (int i = 0; i < kDotChains; ++i) sum[i] = dot(sum[i], codes, x);
  }
  for (const Ints& chain : sum) asm volatile("" : : "m"(chain));
  return rounds * kDotChains * kIntBytes * 2;
}
