// The probes' text, compiled once for each instruction set inside a namespace of its own. The file that
// includes it defines before:
//
//   Floats, kFloatLanes   a vector register of floats
//   splat(value)          all lanes the same
//   fma(a, b, c)          a * b + c
//   kChains               independent chains that hide its latency and fit the registers

/// A cache line; the compiler takes it in as many loads as its registers need.
using Line = std::uint64_t __attribute__((vector_size(64)));

/// Keeps the compiler from merging what comes before with what comes after, as into a call of memcpy.
EIDER_ALWAYS_INLINE void end_of_piece() {
  asm volatile("" ::: "memory");
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

inline std::int64_t fp32_fma(std::int64_t rounds) {
  const Floats factor = splat(0.999F);
  const Floats term = splat(0.001F);
  Floats sum[kChains];
  for (int i = 0; i < kChains; ++i) sum[i] = splat(static_cast<float>(i));
  for (std::int64_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 16
    for (int i = 0; i < kChains; ++i) sum[i] = fma(sum[i], factor, term);
  }
  for (const Floats& chain : sum) asm volatile("" : : "m"(chain));
  return rounds * kChains * kFloatLanes * 2;
}

inline Probes make_probes(const char* isa, std::int64_t (*int8_dot)(std::int64_t)) {
  return {isa,
          {&read<1>, &read<2>, &read<4>, &read<8>},
          {&write<1>, &write<2>, &write<4>, &write<8>},
          {&copy<1>, &copy<2>, &copy<4>, &copy<8>},
          &fp32_fma,
          int8_dot};
}
