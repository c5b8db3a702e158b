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

// One table for each instruction set that the build has (isa/CMakeLists.txt), to be called only where the
// machine has it. They are named as the cpu backend's.

/// Any CPU.
namespace scalar {
Probes make_probes();
}
namespace avx2 {
Probes make_probes();
}
namespace avx2_vnni {
Probes make_probes();
}
namespace avx512 {
Probes make_probes();
}
namespace neon {
Probes make_probes();
}
namespace neon_dot {
Probes make_probes();
}

}  // namespace eider::bench
