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

namespace eider {

namespace quantize_detail {

// A scale as the decoder will see it, and its stored half.
struct HalfScale {
  explicit HalfScale(float wanted) : bits(float_to_half(wanted)), value(half_to_float(bits)) {}
  std::uint16_t bits;
  float value;
};

// round(x / step) within [low, high]; 0 where step is 0.
inline int nearest_code(float x, float step, int low, int high) {
  if (step == 0) return std::clamp(0, low, high);
  return static_cast<int>(
      std::clamp(std::nearbyint(x / step), static_cast<float>(low), static_cast<float>(high)));
}

inline float largest_magnitude(std::span<const float> x) {
  return *std::max_element(x.begin(), x.end(), [](float a, float b) { return std::abs(a) < std::abs(b); });
}

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

// The shared part of Q4_K and Q5_K: scales, minima and the codes 0 .. levels of 256 columns.
template <class Block>
void encode_k(std::span<const float> x, int levels, Block& block, int (&codes)[256]) {
  float scale[8], min[8];
  for (std::size_t j = 0; j < 8; ++j) {
    const auto [low, high] = std::minmax_element(x.begin() + 32 * j, x.begin() + 32 * j + 32);
    min[j] = std::max(-*low, 0.0f);
    scale[j] = std::max(*high + min[j], 0.0f) / static_cast<float>(levels);
  }
  const HalfScale d(*std::max_element(scale, scale + 8) / 63);
  const HalfScale dmin(*std::max_element(min, min + 8) / 63);
  block.d = d.bits;
  block.dmin = dmin.bits;
  std::memset(block.scales, 0, sizeof block.scales);
  for (int j = 0; j < 8; ++j) {
    const int sc = nearest_code(scale[j], d.value, 0, 63);
    const int mn = nearest_code(min[j], dmin.value, 0, 63);
    std::uint8_t* const packed = block.scales + j % 4;
    if (j < 4) {
      packed[0] = static_cast<std::uint8_t>(sc);
      packed[4] = static_cast<std::uint8_t>(mn);
    } else {
      packed[0] = static_cast<std::uint8_t>(packed[0] | (sc >> 4) << 6);
      packed[4] = static_cast<std::uint8_t>(packed[4] | (mn >> 4) << 6);
      packed[8] = static_cast<std::uint8_t>((sc & 15) | (mn & 15) << 4);
    }
    for (int i = 32 * j; i < 32 * j + 32; ++i)
      codes[i] = nearest_code(x[static_cast<std::size_t>(i)] + dmin.value * static_cast<float>(mn),
                              d.value * static_cast<float>(sc), 0, levels);
  }
  for (int i = 0; i < 128; ++i) {
    const int first = i / 32 * 64 + i % 32;
    block.qs[i] = static_cast<std::uint8_t>((codes[first] & 15) | (codes[first + 32] & 15) << 4);
  }
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
  int codes[256];
  encode_k(x, 15, block, codes);
}

inline void encode(std::span<const float> x, Q5_K::Block& block) {
  int codes[256];
  encode_k(x, 31, block, codes);
  std::memset(block.qh, 0, sizeof block.qh);
  for (int i = 0; i < 256; ++i)
    block.qh[i % 32] = static_cast<std::uint8_t>(block.qh[i % 32] | (codes[i] >> 4) << (i / 32));
}

inline void encode(std::span<const float> x, Q6_K::Block& block) {
  float scale[16];
  for (std::size_t j = 0; j < 16; ++j) scale[j] = std::abs(largest_magnitude(x.subspan(16 * j, 16))) / 31;
  const HalfScale d(*std::max_element(scale, scale + 16) / 127);
  block = {};
  block.d = d.bits;
  for (int i = 0; i < 256; ++i) {
    block.scales[i / 16] = static_cast<std::int8_t>(nearest_code(scale[i / 16], d.value, 0, 127));
    const float step = d.value * static_cast<float>(block.scales[i / 16]);
    const int code = nearest_code(x[static_cast<std::size_t>(i)], step, -32, 31) + 32;
    const int n = i / 128, p = i % 128 / 32, l = i % 32;
    std::uint8_t& low = block.ql[64 * n + 32 * (p % 2) + l];
    std::uint8_t& high = block.qh[32 * n + l];
    low = static_cast<std::uint8_t>(low | (code & 15) << (4 * (p / 2)));
    high = static_cast<std::uint8_t>(high | (code >> 4) << (2 * p));
  }
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
