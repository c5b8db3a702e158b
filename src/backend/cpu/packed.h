// Packed weights: the layout that the CPU kernels read. Vector lanes run along rows, so rows are interleaved:
// a tile is 32 rows, cut along the columns into the units of docs/NUMERICS.md, and what a kernel loads next
// lies next.
//
// Integer formats. A strip is 32 columns of a tile: 8 groups of 4 columns, a row's 4 codes in one 32-bit
// word, so that one instruction multiplies a group of every row. Codes are stored unsigned, without the
// format's offset (Q4_0: 8, Q5_0: 16, Q6_K: 32); Q8_0's stay signed bytes.
//
//   8 bits   [group 8][row 32][4]                                                    1024 bytes
//   4 bits   [group pair 4][row 32][4]     low nibble: even group, high: odd one       512 bytes
//   5 bits   the 4-bit planes, then [row 32][4]: bit g = fifth bit of group g          128 bytes more
//   6 bits   the 4-bit planes, then [half 2][row 32][4]: bits 2i, 2i + 1 = upper bits
//            of group 4 * half + i                                                     256 bytes more
//
//   unit of 32 columns:  strip | scale half[32] | min half[32] where the format has one
//   unit of 256 columns: 8 strips | sub-scales [8 or 16][32] of one byte | mins byte [pair 4][row 32][2]
//   where the
//                        format has them | d half[32] | dmin half[32] where the format has it
//
// Float formats: [column][row 32] elements, as stored.
//
// Opened tiles are what kernels make of packed ones where many tokens share the work: codes as bytes, the
// rest in planes of 4 bytes a row. A unit: codes [8 * strips][row 32][4] | scale float[32] | minimum's scale
// float[32] | sub-scales [8 or 16][32] and pairs of sub-minima [4][32] as the dot products of an instruction
// set take them. Float formats become F32.
//
// The last tile of a matrix is filled up with zeros. Every unit is a multiple of 64 bytes, and a tile begins
// at one.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/host/kernels.h"
#include "format/storage_format.h"

namespace eider::cpu {

using host::kRowTile;
static_assert(kRowTile == 32);
inline constexpr std::int64_t kStripColumns = 32;

/// How a format is packed.
template <class F>
struct PackedFormat;  // kBits: of a code; kOffset: stored code - kOffset is the code; kSubScales: of a
                      // superblock

template <int bits, int offset, int sub_scales = 0>
struct IntegerCodes {
  static constexpr int kBits = bits;
  static constexpr int kOffset = offset;
  static constexpr int kSubScales = sub_scales;
};
template <>
struct PackedFormat<Q4_0> : IntegerCodes<4, 8> {};
template <>
struct PackedFormat<Q4_1> : IntegerCodes<4, 0> {};
template <>
struct PackedFormat<Q5_0> : IntegerCodes<5, 16> {};
template <>
struct PackedFormat<Q5_1> : IntegerCodes<5, 0> {};
template <>
struct PackedFormat<Q8_0> : IntegerCodes<8, 0> {};
template <>
struct PackedFormat<Q4_K> : IntegerCodes<4, 0, 8> {};
template <>
struct PackedFormat<Q5_K> : IntegerCodes<5, 0, 8> {};
template <>
struct PackedFormat<Q6_K> : IntegerCodes<6, 32, 16> {};

/// Byte offsets inside a strip and a unit.
template <class F>
struct UnitLayout {
  static constexpr bool kSuper = F::kProduct == ProductRule::kInteger256;
  static constexpr int kBits = PackedFormat<F>::kBits;
  static constexpr std::int64_t kHighPlane = kRowTile * 16;  // after the nibbles
  static constexpr std::int64_t kStripBytes = kRowTile * kStripColumns * kBits / 8;

  static constexpr std::int64_t kStrips = kSuper ? 8 : 1;
  static constexpr std::int64_t kSubScales = kStrips * kStripBytes;
  static constexpr std::int64_t kMins = kSubScales + PackedFormat<F>::kSubScales * kRowTile;
  static constexpr std::int64_t kScales = kMins + (kSuper && F::kHasMin ? 8 * kRowTile : 0);
  static constexpr std::int64_t kMinScales = kScales + 2 * kRowTile;
  static constexpr std::int64_t kBytes = kMinScales + (F::kHasMin ? 2 * kRowTile : 0);
  static_assert(kBytes % 64 == 0);
};

/// 4 bytes a row: the codes of a group of columns, or one number.
inline constexpr std::int64_t kPlane = kRowTile * 4;

/// Byte offsets inside a unit of an opened tile.
template <class F>
struct OpenedLayout {
  static constexpr std::int64_t kStrips = UnitLayout<F>::kStrips;
  static constexpr std::int64_t kStripBytes = 8 * kPlane;
  static constexpr std::int64_t kScale = kStrips * kStripBytes;
  static constexpr std::int64_t kMinScale = kScale + kPlane;
  static constexpr std::int64_t kSubScales = kMinScale + (F::kHasMin ? kPlane : 0);
  static constexpr std::int64_t kMinPairs = kSubScales + PackedFormat<F>::kSubScales * kPlane;
  static constexpr std::int64_t kBytes = kMinPairs + (UnitLayout<F>::kSuper && F::kHasMin ? 4 * kPlane : 0);
};

/// Bytes of one opened tile of `columns`.
std::int64_t opened_tile_bytes(Format format, std::int64_t columns);
/// Bytes of one tile of `columns`.
std::int64_t packed_tile_bytes(Format format, std::int64_t columns);
/// Bytes of a packed matrix.
std::int64_t packed_bytes(Format format, std::int64_t rows, std::int64_t columns);
/// Packs tile `tile` (rows 32 * tile and on) of a matrix of `rows` rows of `row_bytes` each into
/// packed_tile_bytes().
void pack_tile(Format format, const std::byte* data, std::int64_t row_bytes, std::int64_t rows,
               std::int64_t columns, std::int64_t tile, std::byte* packed);

}  // namespace eider::cpu
