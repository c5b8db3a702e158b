// Encoders for every storage format: plain scalar quantisers, good enough to make random models and test rows
// of. The engine itself never encodes.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "format/storage_format.h"
#include "tests/support/quantize_grid.h"
#include "tests/support/quantize_parts.h"

namespace eider {

namespace quantize_detail {

// Packs codes 0..31 as Q4_x and Q5_x do: low nibbles are columns 0..15, fifth bits (if any) go to qh.
inline void pack_nibbles(const int (&codes)[32], std::uint8_t (&qs)[16]) {
  for (int i = 0; i < 16; ++i) qs[i] = static_cast<std::uint8_t>((codes[i] & 15) | (codes[i + 16] & 15) << 4);
}
inline void pack_fifth_bits(const int (&codes)[32], std::uint8_t (&qh)[4]) {
  std::memset(qh, 0, sizeof qh);
  for (int i = 0; i < 32; ++i)
    qh[i / 8] = static_cast<std::uint8_t>(qh[i / 8] | (codes[i] >> 4 & 1) << (i % 8));
}

// Codes 0 .. 2 * offset - 1 for value = d * (code - offset); the value of largest magnitude gets code 0.
inline std::uint16_t symmetric_codes(std::span<const float> x, int offset, int (&codes)[32]) {
  const HalfScale d(largest_magnitude(x) / static_cast<float>(-offset));
  for (std::size_t i = 0; i < 32; ++i) codes[i] = nearest_code(x[i], d.value, -offset, offset - 1) + offset;
  return d.bits;
}

struct ScaleAndMin {
  std::uint16_t d, m;
};
// Codes 0 .. levels for value = d * code + m.
inline ScaleAndMin affine_codes(std::span<const float> x, int levels, int (&codes)[32]) {
  const auto [low, high] = std::minmax_element(x.begin(), x.end());
  const HalfScale m(*low);
  const HalfScale d((*high - *low) / static_cast<float>(levels));
  for (std::size_t i = 0; i < 32; ++i) codes[i] = nearest_code(x[i] - m.value, d.value, 0, levels);
  return {d.bits, m.bits};
}

// Scales, minima and codes 0 .. levels of 256 columns in `count` sub-blocks, value = d * scale * code - dmin
// * min; scales and minima are at most `limit`.
template <int count>
struct AffineSubBlocks {
  AffineSubBlocks(std::span<const float> x, int levels, int limit) {
    constexpr std::ptrdiff_t kColumns = 256 / count;
    float wanted_scale[count], wanted_min[count];
    for (int j = 0; j < count; ++j) {
      const auto first = x.begin() + kColumns * j;
      const auto [low, high] = std::minmax_element(first, first + kColumns);
      wanted_min[j] = std::max(-*low, 0.0f);
      wanted_scale[j] = std::max(*high + wanted_min[j], 0.0f) / static_cast<float>(levels);
    }
    d = HalfScale(*std::max_element(wanted_scale, wanted_scale + count) / static_cast<float>(limit));
    dmin = HalfScale(*std::max_element(wanted_min, wanted_min + count) / static_cast<float>(limit));
    for (int j = 0; j < count; ++j) {
      scale[j] = nearest_code(wanted_scale[j], d.value, 0, limit);
      min[j] = nearest_code(wanted_min[j], dmin.value, 0, limit);
    }
    for (int i = 0; i < 256; ++i) {
      const int j = i / kColumns;
      codes[i] = nearest_code(x[static_cast<std::size_t>(i)] + dmin.value * static_cast<float>(min[j]),
                              d.value * static_cast<float>(scale[j]), 0, levels);
    }
  }

  HalfScale d{0}, dmin{0};
  int scale[count], min[count], codes[256];
};

// The shared part of Q4_K and Q5_K: scales, minima and the lower four bits of codes 0 .. levels.
template <class Block>
AffineSubBlocks<8> encode_k(std::span<const float> x, int levels, Block& block) {
  const AffineSubBlocks<8> parts(x, levels, 63);
  block.d = parts.d.bits;
  block.dmin = parts.dmin.bits;
  for (int j = 0; j < 4; ++j) {
    const int scale = parts.scale[j + 4], min = parts.min[j + 4];
    block.scales[j] = static_cast<std::uint8_t>(parts.scale[j] | (scale >> 4) << 6);
    block.scales[j + 4] = static_cast<std::uint8_t>(parts.min[j] | (min >> 4) << 6);
    block.scales[j + 8] = static_cast<std::uint8_t>((scale & 15) | (min & 15) << 4);
  }
  for (int i = 0; i < 128; ++i) {
    const int first = i / 32 * 64 + i % 32;
    block.qs[i] = static_cast<std::uint8_t>((parts.codes[first] & 15) | (parts.codes[first + 32] & 15) << 4);
  }
  return parts;
}

// Of Q2_K, Q3_K and TQ2_0, the lower two bits.
inline void pack_two_bit(const int (&codes)[256], std::uint8_t (&qs)[64]) {
  std::memset(qs, 0, sizeof qs);
  for (int i = 0; i < 256; ++i) {
    std::uint8_t& packed = qs[i / 128 * 32 + i % 32];
    packed = static_cast<std::uint8_t>(packed | (codes[i] & 3) << (i % 128 / 32 * 2));
  }
}

// The number of the value nearest to x / step in a table of four_bit.h.
inline int nearest_value(float x, float step, const std::int8_t (&values)[16]) {
  int best = 0;
  const auto error = [&](int n) { return std::abs(x - step * static_cast<float>(values[n])); };
  for (int n = 1; n < 16; ++n)
    if (error(n) < error(best)) best = n;
  return best;
}

// 2 * bytes columns as numbers of values, low nibbles first.
inline void pack_four_bit(std::span<const float> x, float step, const std::int8_t (&values)[16],
                          std::size_t bytes, std::uint8_t* qs) {
  for (std::size_t i = 0; i < bytes; ++i)
    qs[i] = static_cast<std::uint8_t>(nearest_value(x[i], step, values) |
                                      nearest_value(x[bytes + i], step, values) << 4);
}

inline void encode(std::span<const float> x, F32::Block& block) {
  block.value = x[0];
}
inline void encode(std::span<const float> x, F16::Block& block) {
  block.half = float_to_half(x[0]);
}
inline void encode(std::span<const float> x, BF16::Block& block) {
  block.upper = float_to_bfloat16(x[0]);
}

inline void encode(std::span<const float> x, FP8_E4M3::Block& block) {
  const float magnitude = std::abs(x[0]);
  std::uint8_t code = 0;  // the largest that is not above the value, or the next one if that is nearer
  const auto value = [](int c) {
    float v;
    FP8_E4M3::decode({static_cast<std::uint8_t>(c)}, &v);
    return v;
  };
  while (code < 0x7e && value(code + 1) <= magnitude) ++code;
  if (code < 0x7e && value(code + 1) - magnitude < magnitude - value(code)) ++code;
  block.code = static_cast<std::uint8_t>(code | (std::signbit(x[0]) ? 0x80 : 0));
}
inline void encode(std::span<const float> x, Q8_0::Block& block) {
  const HalfScale d(std::abs(largest_magnitude(x)) / 127);
  block.d = d.bits;
  for (std::size_t i = 0; i < 32; ++i)
    block.qs[i] = static_cast<std::int8_t>(nearest_code(x[i], d.value, -127, 127));
}

inline void encode(std::span<const float> x, Q4_0::Block& block) {
  int codes[32];
  block.d = symmetric_codes(x, 8, codes);
  pack_nibbles(codes, block.qs);
}

inline void encode(std::span<const float> x, Q4_1::Block& block) {
  int codes[32];
  const auto [d, m] = affine_codes(x, 15, codes);
  block.d = d;
  block.m = m;
  pack_nibbles(codes, block.qs);
}

inline void encode(std::span<const float> x, Q5_0::Block& block) {
  int codes[32];
  block.d = symmetric_codes(x, 16, codes);
  pack_nibbles(codes, block.qs);
  pack_fifth_bits(codes, block.qh);
}

inline void encode(std::span<const float> x, Q5_1::Block& block) {
  int codes[32];
  const auto [d, m] = affine_codes(x, 31, codes);
  block.d = d;
  block.m = m;
  pack_nibbles(codes, block.qs);
  pack_fifth_bits(codes, block.qh);
}

inline void encode(std::span<const float> x, Q4_K::Block& block) {
  encode_k(x, 15, block);
}

inline void encode(std::span<const float> x, Q5_K::Block& block) {
  const AffineSubBlocks<8> parts = encode_k(x, 31, block);
  std::memset(block.qh, 0, sizeof block.qh);
  for (int i = 0; i < 256; ++i)
    block.qh[i % 32] = static_cast<std::uint8_t>(block.qh[i % 32] | (parts.codes[i] >> 4) << (i / 32));
}

inline void encode(std::span<const float> x, Q6_K::Block& block) {
  const auto steps = largest_as<16>(x, 31);
  const HalfScale d(steps.largest / 127);
  block = {};
  block.d = d.bits;
  for (int i = 0; i < 256; ++i) {
    block.scales[i / 16] = static_cast<std::int8_t>(nearest_code(steps.step[i / 16], d.value, 0, 127));
    const float step = d.value * static_cast<float>(block.scales[i / 16]);
    const int code = nearest_code(x[static_cast<std::size_t>(i)], step, -32, 31) + 32;
    const int n = i / 128, p = i % 128 / 32, l = i % 32;
    std::uint8_t& low = block.ql[64 * n + 32 * (p % 2) + l];
    std::uint8_t& high = block.qh[32 * n + l];
    low = static_cast<std::uint8_t>(low | (code & 15) << (4 * (p / 2)));
    high = static_cast<std::uint8_t>(high | (code >> 4) << (2 * p));
  }
}

inline void encode(std::span<const float> x, Q2_K::Block& block) {
  const AffineSubBlocks<16> parts(x, 3, 15);
  block.d = parts.d.bits;
  block.dmin = parts.dmin.bits;
  for (int j = 0; j < 16; ++j)
    block.scales[j] = static_cast<std::uint8_t>(parts.scale[j] | parts.min[j] << 4);
  pack_two_bit(parts.codes, block.qs);
}

inline void encode(std::span<const float> x, Q3_K::Block& block) {
  const auto steps = largest_as<16>(x, 3);
  const HalfScale d(steps.largest / 31);
  block = {};
  block.d = d.bits;
  int codes[256];
  for (int j = 0; j < 16; ++j) {
    const int scale = nearest_code(steps.step[j], d.value, 0, 31);
    const int stored = scale + 32;
    std::uint8_t& low = block.scales[j % 8];
    std::uint8_t& high = block.scales[8 + j % 4];
    low = static_cast<std::uint8_t>(low | (stored & 15) << (4 * (j / 8)));
    high = static_cast<std::uint8_t>(high | (stored >> 4) << (2 * (j / 4)));
    for (int i = 16 * j; i < 16 * j + 16; ++i) {
      codes[i] = nearest_code(x[static_cast<std::size_t>(i)], d.value * static_cast<float>(scale), -4, 3) + 4;
      std::uint8_t& mask = block.hmask[i % 32];
      mask = static_cast<std::uint8_t>(mask | (codes[i] >> 2) << (i / 32));
    }
  }
  pack_two_bit(codes, block.qs);
}

inline void encode(std::span<const float> x, IQ4_NL::Block& block) {
  const HalfScale d(std::abs(largest_magnitude(x)) / kIq4Values[15]);
  block.d = d.bits;
  pack_four_bit(x, d.value, kIq4Values, 16, block.qs);
}

inline void encode(std::span<const float> x, IQ4_XS::Block& block) {
  const auto steps = largest_as<8>(x, kIq4Values[15]);
  const HalfScale d(steps.largest / 31);
  block = {};
  block.d = d.bits;
  for (std::size_t j = 0; j < 8; ++j) {
    const int scale = nearest_code(steps.step[j], d.value, 0, 31);
    const int stored = scale + 32;
    std::uint8_t& low = block.scales_l[j / 2];
    low = static_cast<std::uint8_t>(low | (stored & 15) << (4 * (j % 2)));
    block.scales_h = static_cast<std::uint16_t>(block.scales_h | (stored >> 4) << (2 * j));
    pack_four_bit(x.subspan(32 * j, 32), d.value * static_cast<float>(scale), kIq4Values, 16,
                  block.qs + 16 * j);
  }
}

inline void encode(std::span<const float> x, MXFP4::Block& block) {
  // The largest value gets the exponent of E2M1's largest, 4 to 6.
  const int exponent = static_cast<int>(float_bits(std::abs(largest_magnitude(x))) >> 23);
  block.e = static_cast<std::uint8_t>(std::max(exponent - 2, 0));
  pack_four_bit(x, MXFP4::half_of_e8m0(block.e), kE2m1Values, 16, block.qs);
}

inline void encode(std::span<const float> x, NVFP4::Block& block) {
  constexpr std::uint8_t kLargest = 0x7e;
  for (std::size_t j = 0; j < 4; ++j) {
    const auto columns = x.subspan(16 * j, 16);
    const float wanted = std::abs(largest_magnitude(columns)) / kE2m1Values[7];
    std::uint8_t& scale = block.d[j];  // the smallest that reaches the largest value
    for (scale = 0; scale < kLargest && NVFP4::half_of_ue4m3(scale) < wanted;) ++scale;
    pack_four_bit(columns, NVFP4::half_of_ue4m3(scale), kE2m1Values, 8, block.qs + 8 * j);
  }
}

inline void encode(std::span<const float> x, TQ1_0::Block& block) {
  const HalfScale d(ternary_step(x));
  block.d = d.bits;
  // The byte of `count` columns `stride` apart: the fraction that their digits are, rounded up.
  const auto packed = [&](int first, int stride, int count) {
    int number = 0;
    for (int place = 0; place < 5; ++place) {
      const auto column = static_cast<std::size_t>(first + stride * place);
      number = 3 * number + (place < count ? nearest_code(x[column], d.value, -1, 1) + 1 : 0);
    }
    return static_cast<std::uint8_t>((number * 256 + 242) / 243);
  };
  for (int i = 0; i < 32; ++i) block.qs[i] = packed(i, 32, 5);
  for (int i = 0; i < 16; ++i) block.qs[32 + i] = packed(160 + i, 16, 5);
  for (int i = 0; i < 4; ++i) block.qh[i] = packed(240 + i, 4, 4);
}

inline void encode(std::span<const float> x, TQ2_0::Block& block) {
  const HalfScale d(ternary_step(x));
  block.d = d.bits;
  int codes[256];
  for (std::size_t i = 0; i < 256; ++i) codes[i] = nearest_code(x[i], d.value, -1, 1) + 1;
  pack_two_bit(codes, block.qs);
}

inline void encode(std::span<const float> x, Q1_0::Block& block) {
  float sum = 0;
  for (const float value : x) sum += std::abs(value);
  block.d = float_to_half(sum / static_cast<float>(x.size()));
  std::memset(block.qs, 0, sizeof block.qs);
  for (std::size_t i = 0; i < 128; ++i)
    block.qs[i / 8] = static_cast<std::uint8_t>(block.qs[i / 8] | (x[i] >= 0 ? 1 : 0) << (i % 8));
}

}  // namespace quantize_detail

/// The bytes of a row of finite values, as many as a multiple of the format's block.
inline std::vector<std::byte> quantize_row(Format format, std::span<const float> values) {
  return visit_format(format, [&]<class F>() {
    std::vector<std::byte> bytes;
    for (std::size_t i = 0; i < values.size(); i += F::kBlockElems) {
      typename F::Block block;
      quantize_detail::encode(values.subspan(i, F::kBlockElems), block);
      const auto* first = reinterpret_cast<const std::byte*>(&block);
      bytes.insert(bytes.end(), first, first + sizeof block);
    }
    return bytes;
  });
}

}  // namespace eider
