// The probes' text. It is compiled once for each instruction set (CMakeLists.txt beside this file): EIDER_ISA
// is its namespace, EIDER_ISA_NAME the same as a string, EIDER_VECTORS the file that defines
//
//   Floats, kFloatLanes    a vector register of floats
//   splat(value)           all lanes the same
//   fma(a, b, c)           a * b + c
//   Ints                   a vector register of bytes, or of their sums in 32 bits
//   splat_bytes(value)     all bytes the same
//   dot(sum, codes, x)     sum and kDotProducts products of bytes
//   kChains, kDotChains    independent chains that hide the latency of fma() and dot() and fit the registers;
//                          0 dots where there is nothing faster than floats
#include "bench/probes.h"

#include "base/inline.h"

#if defined(__AVX2__)
#include <immintrin.h>
#elif defined(__ARM_NEON)
#include <arm_neon.h>
#endif

namespace eider::bench::EIDER_ISA {
namespace {

#include EIDER_VECTORS

/// A cache line; the compiler takes it in as many loads as its registers need.
using Line = std::uint64_t __attribute__((vector_size(64)));

/// Keeps the compiler from merging what comes before with what comes after, as into a call of memcpy.
EIDER_ALWAYS_INLINE void end_of_piece() {
  asm volatile("" ::: "memory");
}

/// Keeps the compiler from dropping what made `value`, and lets it stay in its register.
template <class Vector>
EIDER_ALWAYS_INLINE void keep(Vector value) {
#if defined(__x86_64__)
  asm volatile("" : : "v"(value));
#elif defined(__aarch64__)
  asm volatile("" : : "w"(value));
#else
  asm volatile("" : : "m"(value));
#endif
}

template <int streams>
void read(const std::byte* data, std::size_t bytes) {
  const std::size_t each = bytes / streams;
  Line sum[2] = {};
  for (std::size_t at = 0; at < each; at += kStreamPiece) {
    for (int stream = 0; stream < streams; ++stream) {
      const auto* line = reinterpret_cast<const Line*>(data + stream * each + at);
      sum[0] ^= line[0];
      sum[1] ^= line[1];
      sum[0] ^= line[2];
      sum[1] ^= line[3];
    }
  }
  sum[0] ^= sum[1];
  asm volatile("" : : "m"(sum[0]));
}

template <int streams>
void write(std::byte* data, std::size_t bytes) {
  const std::size_t each = bytes / streams;
  const Line value = {1, 2, 3, 4, 5, 6, 7, 8};
  for (std::size_t at = 0; at < each; at += kStreamPiece) {
    for (int stream = 0; stream < streams; ++stream) {
      auto* line = reinterpret_cast<Line*>(data + stream * each + at);
      for (int i = 0; i < 4; ++i) line[i] = value;
      end_of_piece();
    }
  }
}

template <int streams>
void copy(std::byte* to, const std::byte* from, std::size_t bytes) {
  const std::size_t each = bytes / streams;
  for (std::size_t at = 0; at < each; at += kStreamPiece) {
    for (int stream = 0; stream < streams; ++stream) {
      const auto* source = reinterpret_cast<const Line*>(from + stream * each + at);
      auto* line = reinterpret_cast<Line*>(to + stream * each + at);
      for (int i = 0; i < 4; ++i) line[i] = source[i];
      end_of_piece();
    }
  }
}

std::int64_t fp32_fma(std::int64_t rounds) {
  const Floats factor = splat(0.999F);
  const Floats term = splat(0.001F);
  Floats sum[kChains];
  for (int i = 0; i < kChains; ++i) sum[i] = splat(static_cast<float>(i));
  for (std::int64_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 16
    for (int i = 0; i < kChains; ++i) sum[i] = fma(sum[i], factor, term);
  }
#pragma GCC unroll 16
  for (int i = 0; i < kChains; ++i) keep(sum[i]);
  return rounds * kChains * kFloatLanes * 2;
}

template <int chains>
std::int64_t int8_dot(std::int64_t rounds) {
  const Ints codes = splat_bytes(3);
  const Ints x = splat_bytes(5);
  Ints sum[chains];
  for (int i = 0; i < chains; ++i) sum[i] = splat_bytes(static_cast<std::int8_t>(i));
  for (std::int64_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 16
    for (int i = 0; i < chains; ++i) sum[i] = dot(sum[i], codes, x);
  }
#pragma GCC unroll 16
  for (int i = 0; i < chains; ++i) keep(sum[i]);
  return rounds * chains * kDotProducts * 2;
}

template <int chains>
constexpr auto int8_dot_or_null() -> std::int64_t (*)(std::int64_t) {
  if constexpr (chains == 0)
    return nullptr;
  else
    return &int8_dot<chains>;
}

}  // namespace

Probes make_probes() {
  return {EIDER_ISA_NAME,
          {&read<1>, &read<2>, &read<4>, &read<8>},
          {&write<1>, &write<2>, &write<4>, &write<8>},
          {&copy<1>, &copy<2>, &copy<4>, &copy<8>},
          &fp32_fma,
          int8_dot_or_null<kDotChains>()};
}

}  // namespace eider::bench::EIDER_ISA
