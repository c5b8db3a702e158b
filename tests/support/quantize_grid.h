// Encoders for the IQ formats: every column is rounded to a level of its own first, then each vector goes to
// the entry of the grid that is nearest in levels.
#pragma once

#include <array>
#include <climits>
#include <vector>

#include "format/storage_format.h"
#include "tests/support/quantize_parts.h"

namespace eider::quantize_detail {

// The number of the entry nearest to any vector of `places` levels 0 .. levels - 1.
template <int places, int levels>
class NearestEntry {
 public:
  explicit NearestEntry(std::span<const std::uint16_t> grid) {
    constexpr int kBits = levels <= 4 ? 2 : 3;
    int vectors = 1;
    for (int place = 0; place < places; ++place) vectors *= levels;
    for (int vector = 0; vector < vectors; ++vector) {
      int level[places];
      for (int place = 0, rest = vector; place < places; ++place, rest /= levels)
        level[place] = rest % levels;
      int best = INT_MAX, nearest = 0;
      for (std::size_t entry = 0; entry < grid.size() && best > 0; ++entry) {
        int distance = 0;
        for (int place = 0; place < places && distance < best; ++place) {
          const int difference = level[place] - (grid[entry] >> (kBits * place) & ((1 << kBits) - 1));
          distance += difference * difference;
        }
        if (distance < best) {
          best = distance;
          nearest = static_cast<int>(entry);
        }
      }
      nearest_.push_back(static_cast<std::uint16_t>(nearest));
    }
  }

  // The level of a column is round((|x| - first) / spacing) for places that are magnitudes.
  int of(std::span<const float> x, float first, float spacing) const {
    return find(x,
                [&](float value) { return nearest_code(std::abs(value) - first, spacing, 0, levels - 1); });
  }
  // The level of a column is round(x / spacing) + 1 for places that are -1, 0, 1.
  int of_ternary(std::span<const float> x, float spacing) const {
    return find(x, [&](float value) { return nearest_code(value, spacing, -1, 1) + 1; });
  }

 private:
  template <class Level>
  int find(std::span<const float> x, Level&& level) const {
    int vector = 0;
    for (std::size_t place = places; place-- > 0;) vector = vector * levels + level(x[place]);
    return nearest_[static_cast<std::size_t>(vector)];
  }

  std::vector<std::uint16_t> nearest_;
};

// Scales of the IQ formats are odd multiples of a unit: code s is 2 * s + 1.
inline int odd_scale_code(float step, float unit, int limit) {
  return nearest_code(step - unit, 2 * unit, 0, limit);
}

inline int sign_bits(std::span<const float> x) {
  int bits = 0;
  for (std::size_t k = 0; k < 8; ++k) bits |= (std::signbit(x[k]) ? 1 : 0) << k;
  return bits;
}

// Seven sign bits; where the eighth would be wrong, the smallest column takes the wrong sign.
inline int stored_signs(std::span<const float> x) {
  int bits = sign_bits(x);
  if (expand_signs(bits & 127) != bits) {
    const auto smallest = std::min_element(x.begin(), x.begin() + 8,
                                           [](float a, float b) { return std::abs(a) < std::abs(b); });
    bits ^= 1 << (smallest - x.begin());
  }
  return bits & 127;
}

template <class Byte>
void store_word(std::uint32_t word, Byte* bytes) {
  for (int k = 0; k < 4; ++k) bytes[k] = static_cast<std::uint8_t>(word >> (8 * k));
}

// The word of IQ2_XXS and IQ3_XXS.
inline std::uint32_t signs_and_scale(std::span<const float> x, int scale) {
  auto word = static_cast<std::uint32_t>(scale) << 28;
  for (std::size_t part = 0; part < 4; ++part)
    word |= static_cast<std::uint32_t>(stored_signs(x.subspan(8 * part, 8))) << (7 * part);
  return word;
}

// IQ2 formats: magnitudes 8, 25, 43.
constexpr float kIq2First = 8, kIq2Spacing = 17.5f, kIq2Largest = 43;

inline void encode(std::span<const float> x, IQ2_XXS::Block& block) {
  static const NearestEntry<8, 3> nearest(kIq2XxsGrid);
  const auto steps = largest_as<8>(x, kIq2Largest);
  const HalfScale d(steps.largest * 8 / 31);
  block.d = d.bits;
  for (std::size_t j = 0; j < 8; ++j) {
    const int scale = odd_scale_code(steps.step[j], d.value / 8, 15);
    const float step = d.value / 8 * static_cast<float>(2 * scale + 1);
    for (std::size_t part = 0; part < 4; ++part)
      block.qs[8 * j + part] = static_cast<std::uint8_t>(
          nearest.of(x.subspan(32 * j + 8 * part, 8), kIq2First * step, kIq2Spacing * step));
    store_word(signs_and_scale(x.subspan(32 * j, 32), scale), block.qs + 8 * j + 4);
  }
}

// The 4-bit scales of IQ2_XS and IQ2_S; returns the step of each sub-block.
template <class Block>
std::array<float, 16> encode_iq2_scales(std::span<const float> x, Block& block) {
  const auto steps = largest_as<16>(x, kIq2Largest);
  const HalfScale d(steps.largest * 8 / 31);
  block = {};
  block.d = d.bits;
  std::array<float, 16> step{};
  for (std::size_t j = 0; j < 16; ++j) {
    const int scale = odd_scale_code(steps.step[j], d.value / 8, 15);
    block.scales[j / 2] = static_cast<std::uint8_t>(block.scales[j / 2] | scale << (4 * (j % 2)));
    step[j] = d.value / 8 * static_cast<float>(2 * scale + 1);
  }
  return step;
}

inline void encode(std::span<const float> x, IQ2_XS::Block& block) {
  static const NearestEntry<8, 3> nearest(kIq2XsGrid);
  const std::array<float, 16> step = encode_iq2_scales(x, block);
  for (std::size_t part = 0; part < 32; ++part) {
    const auto vector = x.subspan(8 * part, 8);
    const int entry = nearest.of(vector, kIq2First * step[part / 2], kIq2Spacing * step[part / 2]);
    block.qs[part] = static_cast<std::uint16_t>(entry | stored_signs(vector) << 9);
  }
}

inline void encode(std::span<const float> x, IQ2_S::Block& block) {
  static const NearestEntry<8, 3> nearest(kIq2SGrid);
  const std::array<float, 16> step = encode_iq2_scales(x, block);
  for (std::size_t part = 0; part < 32; ++part) {
    const auto vector = x.subspan(8 * part, 8);
    const int entry = nearest.of(vector, kIq2First * step[part / 2], kIq2Spacing * step[part / 2]);
    block.qs[part] = static_cast<std::uint8_t>(entry);
    block.qh[part / 4] = static_cast<std::uint8_t>(block.qh[part / 4] | entry >> 8 << (2 * (part % 4)));
    block.signs[part] = static_cast<std::uint8_t>(sign_bits(vector));
  }
}

inline void encode(std::span<const float> x, IQ3_XXS::Block& block) {
  static const NearestEntry<4, 8> nearest(kIq3XxsGrid);
  const auto steps = largest_as<8>(x, 31);  // half the grid's values: 2, 6, .. 26, 31
  const HalfScale d(steps.largest * 2 / 31);
  block.d = d.bits;
  for (std::size_t j = 0; j < 8; ++j) {
    const int scale = odd_scale_code(steps.step[j], d.value / 2, 15);
    const float step = d.value / 2 * static_cast<float>(2 * scale + 1);
    for (std::size_t part = 0; part < 8; ++part)
      block.qs[8 * j + part] =
          static_cast<std::uint8_t>(nearest.of(x.subspan(32 * j + 4 * part, 4), 2 * step, 4 * step));
    store_word(signs_and_scale(x.subspan(32 * j, 32), scale), block.signs_and_scales + 4 * j);
  }
}

inline void encode(std::span<const float> x, IQ3_S::Block& block) {
  static const NearestEntry<4, 8> nearest(kIq3SGrid);
  const auto steps = largest_as<8>(x, 15);
  const HalfScale d(steps.largest / 31);
  block = {};
  block.d = d.bits;
  for (std::size_t j = 0; j < 8; ++j) {
    const int scale = odd_scale_code(steps.step[j], d.value, 15);
    const float step = d.value * static_cast<float>(2 * scale + 1);
    block.scales[j / 2] = static_cast<std::uint8_t>(block.scales[j / 2] | scale << (4 * (j % 2)));
    for (std::size_t part = 0; part < 8; ++part) {
      const int entry = nearest.of(x.subspan(32 * j + 4 * part, 4), step, 2 * step);
      block.qs[8 * j + part] = static_cast<std::uint8_t>(entry);
      block.qh[j] = static_cast<std::uint8_t>(block.qh[j] | entry >> 8 << part);
    }
    for (std::size_t part = 0; part < 4; ++part)
      block.signs[4 * j + part] = static_cast<std::uint8_t>(sign_bits(x.subspan(32 * j + 8 * part, 8)));
  }
}

// IQ1 formats: the shift goes where the mean of the columns lies.
inline bool shift_is_down(std::span<const float> x) {
  float sum = 0;
  for (const float value : x) sum += value;
  return sum < 0;
}

inline const NearestEntry<8, 3>& nearest_iq1() {
  static const NearestEntry<8, 3> nearest(kIq1Grid);
  return nearest;
}

inline void encode(std::span<const float> x, IQ1_S::Block& block) {
  const SubBlockSteps<8> steps(x, ternary_step);
  const HalfScale d(steps.largest / 15);
  block.d = d.bits;
  for (std::size_t j = 0; j < 8; ++j) {
    const auto columns = x.subspan(32 * j, 32);
    const int scale = odd_scale_code(steps.step[j], d.value, 7);
    int high = scale << 12 | (shift_is_down(columns) ? 0x8000 : 0);
    for (std::size_t part = 0; part < 4; ++part) {
      const int entry =
          nearest_iq1().of_ternary(columns.subspan(8 * part, 8), d.value * static_cast<float>(2 * scale + 1));
      block.qs[4 * j + part] = static_cast<std::uint8_t>(entry);
      high |= entry >> 8 << (3 * part);
    }
    block.qh[j] = static_cast<std::uint16_t>(high);
  }
}

inline void encode(std::span<const float> x, IQ1_M::Block& block) {
  const SubBlockSteps<16> steps(x, ternary_step);
  const HalfScale d(steps.largest / 15);
  block = {};
  IQ1_M::set_scale_bits(block, d.bits);
  for (std::size_t j = 0; j < 16; ++j) {
    const int scale = odd_scale_code(steps.step[j], d.value, 7);
    block.scales[j / 4] = static_cast<std::uint16_t>(block.scales[j / 4] | scale << (3 * (j % 4)));
    for (std::size_t part = 0; part < 2; ++part) {
      const auto vector = x.subspan(16 * j + 8 * part, 8);
      const int entry = nearest_iq1().of_ternary(vector, d.value * static_cast<float>(2 * scale + 1));
      const int high = entry >> 8 | (shift_is_down(vector) ? 8 : 0);
      block.qs[2 * j + part] = static_cast<std::uint8_t>(entry);
      block.qh[j] = static_cast<std::uint8_t>(block.qh[j] | high << (4 * part));
    }
  }
}

}  // namespace eider::quantize_detail
