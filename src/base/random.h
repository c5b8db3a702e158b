// Philox 4x32-10: the counter-based generator every draw of the sampler comes from (Salmon et al., "Parallel
// random numbers: as easy as 1, 2, 3", 2011). No state: a draw is a function of its key and counter.
#pragma once

#include <array>
#include <cstdint>

namespace eider {

/// Four 32-bit words for a key of two and a counter of four words.
std::array<std::uint32_t, 4> philox4x32_10(std::array<std::uint32_t, 2> key,
                                           std::array<std::uint32_t, 4> counter);

/// The draw in [0, 1) of docs/NUMERICS.md for the token at index `position` of the sequence, choice `choice`
/// of n.
double uniform_draw(std::uint64_t seed, std::uint64_t position, std::uint32_t choice);

}  // namespace eider
