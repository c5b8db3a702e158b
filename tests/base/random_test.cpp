#include "base/random.h"

#include <gtest/gtest.h>

namespace eider {
namespace {

using Words = std::array<std::uint32_t, 4>;

// The known answers that the authors publish with Random123 (kat_vectors, philox4x32 10).
TEST(Philox, PublishedKnownAnswers) {
  EXPECT_EQ(philox4x32_10({0, 0}, {0, 0, 0, 0}), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox4x32_10({0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32_10({0xa4093822, 0x299f31d0}, {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

// The first known answer, put together by hand as docs/NUMERICS.md says: w1 above w0, the upper 53 bits.
TEST(UniformDraw, TakesTheUpper53BitsOfTheFirstTwoWords) {
  EXPECT_EQ(uniform_draw(0, 0, 0), static_cast<double>(0xe169c58d6627e8d5u >> 11) * 0x1p-53);
  EXPECT_EQ(uniform_draw(~std::uint64_t{0}, 0, 0), [] {
    const Words words = philox4x32_10({0xffffffff, 0xffffffff}, {0, 0, 0, 0});
    return static_cast<double>(((std::uint64_t{words[1]} << 32) | words[0]) >> 11) * 0x1p-53;
  }());
}

// The seed is the key, low word first; position and choice are counter words 0, 1 and 2.
TEST(UniformDraw, PlacesItsArguments) {
  const Words words = philox4x32_10({0x55667788, 0x11223344}, {0xddeeff00, 0x99aabbcc, 7, 0});
  EXPECT_EQ(uniform_draw(0x1122334455667788u, 0x99aabbccddeeff00u, 7),
            static_cast<double>(((std::uint64_t{words[1]} << 32) | words[0]) >> 11) * 0x1p-53);
}

TEST(UniformDraw, IsUniform) {
  constexpr int kDraws = 100000;
  constexpr int kBins = 20;
  std::array<int, kBins> histogram{};
  for (int position = 0; position < kDraws; ++position) {
    const double u = uniform_draw(42, static_cast<std::uint64_t>(position), 0);
    ASSERT_GE(u, 0.0);
    ASSERT_LT(u, 1.0);
    ++histogram[static_cast<std::size_t>(u * kBins)];
  }
  double chi_squared = 0;
  for (const int count : histogram) {
    const double excess = count - static_cast<double>(kDraws) / kBins;
    chi_squared += excess * excess / (static_cast<double>(kDraws) / kBins);
  }
  EXPECT_LT(chi_squared, 43.8);  // 19 degrees of freedom, one in a thousand
}

}  // namespace
}  // namespace eider
