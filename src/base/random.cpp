#include "base/random.h"

namespace eider {

std::array<std::uint32_t, 4> philox4x32_10(std::array<std::uint32_t, 2> key,
                                           std::array<std::uint32_t, 4> counter) {
  // The multipliers and the Weyl increments (golden ratio, sqrt(3) - 1) of the paper.
  constexpr std::uint64_t kMultiplier0 = 0xd2511f53u;
  constexpr std::uint64_t kMultiplier1 = 0xcd9e8d57u;
  constexpr std::uint32_t kIncrement0 = 0x9e3779b9u;
  constexpr std::uint32_t kIncrement1 = 0xbb67ae85u;
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t product0 = kMultiplier0 * counter[0];
    const std::uint64_t product1 = kMultiplier1 * counter[2];
    counter = {static_cast<std::uint32_t>(product1 >> 32) ^ counter[1] ^ key[0],
               static_cast<std::uint32_t>(product1),
               static_cast<std::uint32_t>(product0 >> 32) ^ counter[3] ^ key[1],
               static_cast<std::uint32_t>(product0)};
    key[0] += kIncrement0;
    key[1] += kIncrement1;
  }
  return counter;
}

double uniform_draw(std::uint64_t seed, std::uint64_t position, std::uint32_t choice) {
  const auto low = [](std::uint64_t value) { return static_cast<std::uint32_t>(value); };
  const auto high = [](std::uint64_t value) { return static_cast<std::uint32_t>(value >> 32); };
  const auto words = philox4x32_10({low(seed), high(seed)}, {low(position), high(position), choice, 0});
  const std::uint64_t bits = (static_cast<std::uint64_t>(words[1]) << 32) | words[0];
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

}  // namespace eider
