// Probes: the loops that find a machine's roofs, as a table of functions for each instruction set. The files
// that are compiled for one include this header, so it must not use templates of the standard library
// (base/inline.h says why).
#pragma once

#include <cstddef>
#include <cstdint>

namespace eider::bench {

/// How many places a thread reads or writes in turn, and the index of a count in a table.
inline constexpr int kStreamCounts[] = {1, 2, 4, 8};
inline constexpr std::size_t kStreamCountCount = sizeof kStreamCounts / sizeof kStreamCounts[0];
/// Bytes that are taken from one stream before the next has its turn: memory is a multiple of this and of the
/// number of streams.
inline constexpr std::size_t kStreamPiece = 256;

struct Probes {
  const char* isa;
  // By index of kStreamCounts; memory is aligned to 64 bytes.
  void (*read[kStreamCountCount])(const std::byte* data, std::size_t bytes);
  void (*write[kStreamCountCount])(std::byte* data, std::size_t bytes);
  void (*copy[kStreamCountCount])(std::byte* to, const std::byte* from, std::size_t bytes);
  // Chains of multiply-adds, so many that their latency is hidden. Returns the operations of `rounds` rounds
  // (two a multiply-add). int8_dot is null where the instruction set has nothing for it.
  std::int64_t (*fp32_fma)(std::int64_t rounds);
  std::int64_t (*int8_dot)(std::int64_t rounds);
};

/// What every build has: SSE2 or NEON.
const Probes* baseline_probes();
// Null where the build is for another architecture.
const Probes* avx2_probes();
const Probes* avx512_probes();

}  // namespace eider::bench
