// Packed weights: the layout that the CPU kernels read. Vector lanes run along rows, so rows are interleaved:
// a tile is 32 rows, cut along the columns into the units of docs/NUMERICS.md, and what a kernel loads next
// lies next.
//
// Integer formats. A strip is 32 columns of a tile: 8 groups of 4 columns, a row's 4 codes in one 32-bit
// word, so that one instruction multiplies a group of every row. Codes are stored unsigned: without the
// format's offset (Q4_0: 8, Q5_0: 16, Q6_K: 32), or, where a format has few values, as their places in a
// table of them (Tabled below). Q8_0's stay signed bytes.
//
//   8 bits   [group 8][row 32][4]                                                    1024 bytes
//   4 bits   [group pair 4][row 32][4]     low nibble: even group, high: odd one       512 bytes
//   2 bits   [half 2][row 32][4]           bits 2i, 2i + 1: group 4 * half + i         256 bytes
//   1 bit    [row 32][4]                   bit g: group g                              128 bytes
//   5, 6 bits: the planes of 4 bits, then those of the upper bit or 2 bits
//   3 bits   [plane 3][row 32][4]          bits 0-2, 3-5 of plane p: groups 2p, 2p + 1; bits 6-7 of planes 0
//            and 1: lower bits of groups 6 and 7, of plane 2: upper bit of group 6, of group 7
//
//   unit of 32 columns:  strip | scale half[32] | min half[32] where the format has one
//   unit of 256 columns: 8 strips | sub-scales [8 or 16][32] of one byte | mins byte [pair 4][row 32][2]
//   where the
//                        format has them | d half[32] | dmin half[32] where the format has it
//
// Tabled formats may have sub-scales of 4 bits, [pair 4 or 8][32] bytes, the first of a pair in the lower
// nibble, and Q2_K's 16 minima likewise; NVFP4 has two scales, MXFP4's is a bfloat16.
//
// Float formats: [column][row 32] elements, as stored; but FP8 in groups like the codes above:
//
//   scales | subnormals | units of 32 columns, the last one filled up with zeros
//
//   scales: of rows float[32] | of units float[units]    where all rows of every tile share a block,
//                             or float[units][32]        where they do not;
//           they are BlockScales::of_row() and of_unit()
//   subnormals: filled up to a multiple of 64 bytes; a byte for each unit, from the last one before the units
//           backwards, of bits for its groups: whether there is a subnormal code in one (as fp9: 0)
//   unit:   [group 8][row 32][4]                         1024 bytes
//   as fp9: signs [row 32][4] | the same of magnitudes   1152 bytes (format/fp9.h)
//           columns 4g, 4g + 1: bits 15 - 2g, 14 - 2g; columns 4g + 2, 4g + 3: bits 31 - 2g, 30 - 2g
//
// Opened units are what kernels make of packed ones where several tokens share the work, and of tabled ones
// always: codes as bytes, the rest in planes of 4 bytes a row. A unit: codes [8 * strips][row 32][4] | scale
// float[32] | minimum's or second scale float[32] | sub-scales [8 or 16][32] and pairs of sub-minima
// [4 or 8][32] as the dot products of an instruction set take them. Float formats become F32.
//
// The last tile of a matrix is filled up with zeros. Every unit is a multiple of 64 bytes, and a tile begins
// at one.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/cpu/fp8_form.h"
#include "backend/host/kernels.h"
#include "format/four_bit.h"
#include "format/storage_format.h"

namespace eider::cpu {

using host::kRowTile;
static_assert(kRowTile == 32);
inline constexpr std::int64_t kStripColumns = 32;

/// How sub-scales are stored: a byte; 4 bits s, of which the scale is s, or 2 * s + 1; not at all, being 1.
enum class SubScales : std::uint8_t { kBytes, kNibbles, kOddNibbles, kOnes };

/// How a format is packed.
template <class F>
struct PackedFormat;  // kBits: of a code; kOffset: stored code - kOffset is the code; kSubScales: of a
                      // superblock

template <int bits, int offset, int sub_scales = 0>
struct IntegerCodes {
  static constexpr bool kTabled = false;
  static constexpr int kBits = bits;
  static constexpr int kOffset = offset;
  static constexpr int kSubScales = sub_scales;
  static constexpr SubScales kSubScaleForm = SubScales::kBytes;
  static constexpr float kScaleFactor = 1;
  static constexpr bool kWideScale = false;
};
template <>
struct PackedFormat<F32> : IntegerCodes<0, 0> {};
template <>
struct PackedFormat<F16> : IntegerCodes<0, 0> {};
template <>
struct PackedFormat<BF16> : IntegerCodes<0, 0> {};
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

template <>
struct PackedFormat<FP8_E4M3> : IntegerCodes<0, 0> {};

/// FP8 packed as fp9: one more format to kernels.
struct PackedAsFp9 {
  static constexpr Format kFormat = Format::kFP8_E4M3;
  static constexpr ProductRule kProduct = ProductRule::kScaledFloat;
};
template <>
struct PackedFormat<PackedAsFp9> : IntegerCodes<0, 0> {};

/// A format whose codes are places in kValues, at most 16. Its kernels open each unit when they come to it,
/// so that formats share all but that. kScaleFactor: the unit's scale is that of the block (a half, or
/// bfloat16 where kWideScale is set) times this power of two.
template <int bits, int sub_scales = 0, SubScales form = SubScales::kBytes>
struct Tabled {
  static constexpr bool kTabled = true;
  static constexpr int kBits = bits;
  static constexpr int kOffset = 0;
  static constexpr int kSubScales = sub_scales;
  static constexpr SubScales kSubScaleForm = form;
  static constexpr float kScaleFactor = 1;
  static constexpr bool kWideScale = false;
};
template <>
struct PackedFormat<Q2_K> : Tabled<2, 16, SubScales::kNibbles> {
  static constexpr std::int8_t kValues[4] = {0, 1, 2, 3};
};
template <>
struct PackedFormat<Q3_K> : Tabled<3, 16> {
  static constexpr std::int8_t kValues[8] = {-4, -3, -2, -1, 0, 1, 2, 3};
};
struct Iq4Values {
  static constexpr const std::int8_t (&kValues)[16] = kIq4Values;
};
template <>
struct PackedFormat<IQ4_NL> : Tabled<4>, Iq4Values {};
template <>
struct PackedFormat<IQ4_XS> : Tabled<4, 8>, Iq4Values {};
template <>
struct PackedFormat<IQ3_XXS> : Tabled<4, 8, SubScales::kOddNibbles> {
  static constexpr float kScaleFactor = 0.5f;
  static constexpr std::int8_t kValues[16] = {-31, -26, -22, -18, -14, -10, -6, -2,
                                              2,   6,   10,  14,  18,  22,  26, 31};
};
template <>
struct PackedFormat<IQ3_S> : Tabled<4, 8, SubScales::kOddNibbles> {
  static constexpr std::int8_t kValues[16] = {-15, -13, -11, -9, -7, -5, -3, -1, 1, 3, 5, 7, 9, 11, 13, 15};
};
template <int sub_scales>
struct Iq2Codes : Tabled<3, sub_scales, SubScales::kOddNibbles> {
  static constexpr float kScaleFactor = 0.125f;
  static constexpr std::int8_t kValues[6] = {-43, -25, -8, 8, 25, 43};
};
template <>
struct PackedFormat<IQ2_XXS> : Iq2Codes<8> {};
template <>
struct PackedFormat<IQ2_XS> : Iq2Codes<16> {};
template <>
struct PackedFormat<IQ2_S> : Iq2Codes<16> {};
template <int sub_scales>
struct Iq1Codes : Tabled<3, sub_scales, SubScales::kOddNibbles> {
  static constexpr float kScaleFactor = 0.125f;
  static constexpr std::int8_t kValues[6] = {-9, -7, -1, 1, 7, 9};
};
template <>
struct PackedFormat<IQ1_S> : Iq1Codes<8> {};
template <>
struct PackedFormat<IQ1_M> : Iq1Codes<16> {};
struct TernaryCodes : Tabled<2, 8, SubScales::kOnes> {
  static constexpr std::int8_t kValues[4] = {-1, 0, 1, 2};
};
template <>
struct PackedFormat<TQ1_0> : TernaryCodes {};
template <>
struct PackedFormat<TQ2_0> : TernaryCodes {};
struct E2m1Values {
  static constexpr const std::int8_t (&kValues)[16] = kE2m1Values;
};
template <>
struct PackedFormat<MXFP4> : Tabled<4>, E2m1Values {
  static constexpr bool kWideScale = true;
};
template <>
struct PackedFormat<NVFP4> : Tabled<4>, E2m1Values {};
template <>
struct PackedFormat<Q1_0> : Tabled<1> {
  static constexpr std::int8_t kValues[2] = {-1, 1};
};

/// Byte offsets inside a strip and a unit.
template <class F>
struct UnitLayout {
  static constexpr bool kSuper = F::kProduct == ProductRule::kInteger256;
  static constexpr int kBits = PackedFormat<F>::kBits;
  /// Bits of a code in the first planes of a strip; the others lie in the planes after them.
  static constexpr int kLowBits = kBits == 5 || kBits == 6 ? 4 : kBits;
  static constexpr std::int64_t kHighPlane = kRowTile * 4 * kLowBits;
  static constexpr std::int64_t kStripBytes = kRowTile * kStripColumns * kBits / 8;

  static constexpr std::int64_t kStrips = kSuper ? 8 : 1;
  static constexpr std::int64_t kSubScales = kStrips * kStripBytes;
  static constexpr SubScales kSubScaleForm = PackedFormat<F>::kSubScaleForm;
  static constexpr int kSubScaleBits = kSubScaleForm == SubScales::kBytes  ? 8
                                       : kSubScaleForm == SubScales::kOnes ? 0
                                                                           : 4;
  static constexpr std::int64_t kSubScaleBytes = PackedFormat<F>::kSubScales * kRowTile * kSubScaleBits / 8;
  static constexpr std::int64_t kMins = kSubScales + kSubScaleBytes;
  static constexpr std::int64_t kScales = kMins + (kSuper && F::kHasMin ? 8 * kRowTile : 0);
  static constexpr std::int64_t kMinScales = kScales + 2 * kRowTile;
  static constexpr bool kTwoScales = F::kHasMin || F::kProduct == ProductRule::kInteger32Halves;
  static constexpr std::int64_t kBytes = kMinScales + (kTwoScales ? 2 * kRowTile : 0);
  static_assert(kBytes % 64 == 0);
};

/// 4 bytes a row: the codes of a group of columns, or one number.
inline constexpr std::int64_t kPlane = kRowTile * 4;

/// What an opened unit has: kernels need to know no more of it. narrow: the sum of a
/// sub-block's products fits 16 bits.
template <ProductRule rule, int sub_scales, int sub_min_pairs, bool two_scales, bool narrow>
struct OpenedUnit {
  static constexpr ProductRule kProduct = rule;
  static constexpr bool kNarrow = narrow;
  static constexpr bool kTwoScales = two_scales;
  static constexpr int kSubScaleCount = sub_scales;
  static constexpr int kSubMinPairs = sub_min_pairs;
  static constexpr std::int64_t kStrips = rule == ProductRule::kInteger256 ? 8 : 1;
  // Byte offsets.
  static constexpr std::int64_t kStripBytes = 8 * kPlane;
  static constexpr std::int64_t kScale = kStrips * kStripBytes;
  static constexpr std::int64_t kMinScale = kScale + kPlane;
  static constexpr std::int64_t kSubScales = kMinScale + (two_scales ? kPlane : 0);
  static constexpr std::int64_t kMinPairs = kSubScales + sub_scales * kPlane;
  static constexpr std::int64_t kBytes = kMinPairs + sub_min_pairs * kPlane;
};
/// The least and the largest code of an integer format; 0 lies between them.
struct CodeRange {
  int least = 0, largest = 0;
};
template <class F>
constexpr CodeRange code_range() {
  using Format = PackedFormat<F>;
  CodeRange range;
  if constexpr (Format::kTabled) {
    for (const int value : Format::kValues) {
      if (value < range.least) range.least = value;
      if (value > range.largest) range.largest = value;
    }
  } else if constexpr (Format::kBits == 8) {
    range = {-128, 127};
  } else {
    range = {-Format::kOffset, (1 << Format::kBits) - 1 - Format::kOffset};
  }
  return range;
}
/// Whether codes are their own places in the table, so that there is nothing to look up.
template <class F>
constexpr bool codes_are_places() {
  int place = 0;
  for (const int value : PackedFormat<F>::kValues)
    if (value != place++) return false;
  return true;
}
/// Whether codes of a sub-block times 127 add up to 16 bits.
template <class F>
constexpr bool has_narrow_sub_blocks() {
  if constexpr (PackedFormat<F>::kTabled && PackedFormat<F>::kSubScales > 0) {
    constexpr CodeRange kRange = code_range<F>();
    constexpr int kMagnitude = -kRange.least > kRange.largest ? -kRange.least : kRange.largest;
    return kMagnitude * 127 * (256 / PackedFormat<F>::kSubScales) <= 32767;
  } else {
    return false;
  }
}
template <class F>
using OpenedLayout = OpenedUnit<F::kProduct, PackedFormat<F>::kSubScales,
                                UnitLayout<F>::kSuper && F::kHasMin ? (PackedFormat<F>::kTabled ? 8 : 4) : 0,
                                UnitLayout<F>::kTwoScales, has_narrow_sub_blocks<F>()>;

/// Where the parts of a packed tile of FP8 lie, in bytes; the scales of rows come first.
struct Fp8Layout {
  static constexpr std::int64_t kUnitBytes = kRowTile * kStripColumns;
  static constexpr std::int64_t kFp9UnitBytes = kPlane + kUnitBytes;  // signs, magnitudes

  std::int64_t unit_count;
  std::int64_t scales_per_unit;  // floats: 1 or 32
  std::int64_t unit_scales;
  std::int64_t units;

  EIDER_ALWAYS_INLINE Fp8Layout(std::int64_t columns, const BlockScales& scales)
      : unit_count((columns + kStripColumns - 1) / kStripColumns),
        scales_per_unit(scales.block_columns != 0 && (scales.block_rows | scales.first_row) % kRowTile != 0
                            ? kRowTile
                            : 1),
        unit_scales(kPlane),
        units((unit_scales + unit_count * (scales_per_unit * 4 + 1) + 63) / 64 * 64) {}
};

/// Bytes of one opened tile of `columns`.
std::int64_t opened_tile_bytes(Format format, std::int64_t columns);
/// Bytes of one tile of `columns`.
std::int64_t packed_tile_bytes(Format format, std::int64_t columns, const BlockScales& scales = {},
                               Fp8Form form = Fp8Form::kFp8);
/// Packs tile `tile` (rows 32 * tile and on) of a stored matrix into packed_tile_bytes().
void pack_tile(Format format, const host::Matrix& stored, std::int64_t tile, std::byte* packed,
               Fp8Form form = Fp8Form::kFp8);
/// These functions, for a table whose FP8 weights are packed in `form`.
const host::Packing& packing(Fp8Form form);

}  // namespace eider::cpu
