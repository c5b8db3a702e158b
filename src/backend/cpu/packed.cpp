#include "backend/cpu/packed.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>

#include "format/fp9.h"

namespace eider::cpu {
namespace {

std::byte byte(int value) {
  return static_cast<std::byte>(value & 255);
}

void put_half(std::byte* at, float value) {
  const std::uint16_t half = float_to_half(value);
  std::memcpy(at, &half, sizeof half);
}

/// Where each code stands in a tabled format's table, by the code as an unsigned byte.
template <class F>
constexpr std::array<std::uint8_t, 256> kPlaces = [] {
  std::array<std::uint8_t, 256> places{};
  for (std::size_t i = std::size(PackedFormat<F>::kValues); i-- > 0;)  // of equal ones, the first
    places[static_cast<std::uint8_t>(PackedFormat<F>::kValues[i])] = static_cast<std::uint8_t>(i);
  return places;
}();

/// What is stored of a code.
template <class F>
int stored_code(std::int8_t code) {
  if constexpr (PackedFormat<F>::kTabled)
    return kPlaces<F>[static_cast<std::uint8_t>(code)];
  else
    return code + PackedFormat<F>::kOffset;
}

/// ORs bits `first` and on, `count` of them, of a code of group `group` into planes that hold so many bits of
/// each group.
void put_bits(int code, int first, int count, int group, std::byte* planes) {
  const int groups = 8 / count;  // of a plane
  const int bits = code >> first & ((1 << count) - 1);
  planes[group / groups * kPlane] |= byte(bits << (group % groups * count));
}

/// The same of a code of 3 bits (packed.h).
void put_three_bits(int code, int group, std::byte* planes) {
  if (group < 6) {
    planes[group / 2 * kPlane] |= byte(code << (group % 2 * 3));
  } else {
    planes[(group - 6) * kPlane] |= byte((code & 3) << 6);
    planes[2 * kPlane] |= byte(code >> 2 << group);
  }
}

/// The codes of 32 columns of one row into a strip; the strip's bytes are zero before.
template <class F>
void put_codes(const std::int8_t* codes, std::int64_t row, std::byte* strip) {
  using Layout = UnitLayout<F>;
  constexpr int kLow = Layout::kLowBits, kHigh = Layout::kBits - kLow;
  for (int column = 0; column < kStripColumns; ++column) {
    const int code = stored_code<F>(codes[column]);
    std::byte* low = strip + row * 4 + column % 4;
    if constexpr (kLow == 3)
      put_three_bits(code, column / 4, low);
    else
      put_bits(code, 0, kLow, column / 4, low);
    if constexpr (kHigh > 0) put_bits(code, kLow, kHigh, column / 4, low + Layout::kHighPlane);
  }
}

/// The block's scale: half, or bfloat16 where halves do not reach.
template <class F>
void put_scale(std::byte* at, float scale) {
  if constexpr (PackedFormat<F>::kTabled) {
    scale = scale / PackedFormat<F>::kScaleFactor;  // exact: a power of two
    if constexpr (PackedFormat<F>::kWideScale) {
      const std::uint16_t upper = float_to_bfloat16(scale);
      std::memcpy(at, &upper, sizeof upper);
      return;
    }
  }
  put_half(at, scale);
}

template <class F>
void put_unit(const Unit32& unit, std::int64_t row, std::byte* packed) {
  using Layout = UnitLayout<F>;
  put_codes<F>(unit.code, row, packed);
  put_scale<F>(packed + Layout::kScales + 2 * row, unit.scale);
  if constexpr (F::kHasMin) put_half(packed + Layout::kMinScales + 2 * row, unit.min);
}

template <class F>
void put_unit(const Unit32Halves& unit, std::int64_t row, std::byte* packed) {
  using Layout = UnitLayout<F>;
  put_codes<F>(unit.code, row, packed);
  put_scale<F>(packed + Layout::kScales + 2 * row, unit.scale[0]);
  put_scale<F>(packed + Layout::kMinScales + 2 * row, unit.scale[1]);
}

/// Sub-scale or sub-minimum `j` of 4 bits among pairs [pair][row].
void put_nibble(int value, int j, std::int64_t row, std::byte* pairs) {
  pairs[j / 2 * kRowTile + row] |= byte(value << (j % 2 * 4));
}

template <class F>
void put_sub_scale(int scale, int j, std::int64_t row, std::byte* packed) {
  constexpr SubScales kForm = PackedFormat<F>::kSubScaleForm;
  std::byte* at = packed + UnitLayout<F>::kSubScales;
  if constexpr (kForm == SubScales::kBytes) at[j * kRowTile + row] = byte(scale);
  if constexpr (kForm == SubScales::kNibbles) put_nibble(scale, j, row, at);
  if constexpr (kForm == SubScales::kOddNibbles) put_nibble((scale - 1) / 2, j, row, at);
}

template <class F>
void put_unit(const Unit256& unit, std::int64_t row, std::byte* packed) {
  using Layout = UnitLayout<F>;
  constexpr int kSubScales = PackedFormat<F>::kSubScales;
  for (int strip = 0; strip < 8; ++strip)
    put_codes<F>(unit.code + strip * kStripColumns, row, packed + strip * Layout::kStripBytes);
  for (int j = 0; j < kSubScales; ++j)
    put_sub_scale<F>(unit.sub_scale[j * (16 / kSubScales)], j, row, packed);
  put_scale<F>(packed + Layout::kScales + 2 * row, unit.scale);
  if constexpr (F::kHasMin) {
    if constexpr (PackedFormat<F>::kTabled) {
      for (int j = 0; j < 16; ++j) put_nibble(unit.sub_min[j], j, row, packed + Layout::kMins);
    } else {
      for (int j = 0; j < 8; ++j)
        packed[Layout::kMins + (j / 2 * kRowTile + row) * 2 + j % 2] = byte(unit.sub_min[2 * j]);
    }
    put_half(packed + Layout::kMinScales + 2 * row, unit.min_scale);
  }
}

/// The scales of tile `tile` of FP8.
void put_scales(const host::Matrix& stored, std::int64_t tile, std::byte* packed) {
  const Fp8Layout layout(stored.columns, stored.scales);
  const auto put = [](std::byte* to, float scale) { std::memcpy(to, &scale, sizeof scale); };
  const std::int64_t first = tile * kRowTile;
  const std::int64_t rows = std::min(kRowTile, stored.rows - first);
  for (std::int64_t row = 0; row < rows; ++row) put(packed + row * 4, stored.scales.of_row(first + row));
  for (std::int64_t unit = 0; unit < layout.unit_count; ++unit)
    for (std::int64_t row = 0; row < std::min(rows, layout.scales_per_unit); ++row)
      put(packed + layout.unit_scales + (unit * layout.scales_per_unit + row) * 4,
          stored.scales.of_unit(first + row, unit * kStripColumns));
}

/// A row's 32 codes into a unit.
void put_fp8(const FP8_E4M3::Block (&codes)[kStripColumns], std::int64_t row, std::byte* unit) {
  for (int group = 0; group < 8; ++group) std::memcpy(unit + group * kPlane + row * 4, codes + 4 * group, 4);
}

constexpr std::array<std::uint8_t, 256> kFp9Magnitudes = [] {
  std::array<std::uint8_t, 256> magnitudes{};
  for (std::size_t code = 0; code < 256; ++code)
    magnitudes[code] = Fp9::of({static_cast<std::uint8_t>(code)}).magnitude;
  return magnitudes;
}();

/// Bit g: whether group g has a subnormal code.
std::byte subnormal_groups(const FP8_E4M3::Block (&codes)[kStripColumns]) {
  unsigned groups = 0;
  for (int column = 0; column < kStripColumns; ++column)
    groups |= static_cast<unsigned>(FP8_E4M3::is_subnormal(codes[column].code)) << column / 4;
  return std::byte(groups);
}

void put_fp9(const FP8_E4M3::Block (&codes)[kStripColumns], std::int64_t row, std::byte* unit) {
  std::uint32_t signs = 0;
  FP8_E4M3::Block magnitudes[kStripColumns];
  for (int column = 0; column < kStripColumns; ++column) {
    const std::uint8_t code = codes[column].code;
    magnitudes[column].code = kFp9Magnitudes[code];
    signs |= std::uint32_t{code} >> 7 << (column % 4 / 2 * 16 + 15 - column / 4 * 2 - column % 2);
  }
  std::memcpy(unit + row * 4, &signs, sizeof signs);
  put_fp8(magnitudes, row, unit + kPlane);
}

void pack_fp8(const host::Matrix& stored, std::int64_t tile, Fp8Form form, std::byte* packed) {
  put_scales(stored, tile, packed);
  const Fp8Layout layout(stored.columns, stored.scales);
  const bool as_fp9 = form == Fp8Form::kFp9;
  const std::int64_t unit_bytes = as_fp9 ? Fp8Layout::kFp9UnitBytes : Fp8Layout::kUnitBytes;
  const std::int64_t first = tile * kRowTile;
  for (std::int64_t row = 0; row < std::min(kRowTile, stored.rows - first); ++row) {
    const std::byte* from = stored.data + (first + row) * stored.row_bytes;
    for (std::int64_t unit = 0; unit < layout.unit_count; ++unit) {
      const std::int64_t column = unit * kStripColumns;
      FP8_E4M3::Block codes[kStripColumns] = {};
      std::memcpy(codes, from + column,
                  static_cast<std::size_t>(std::min(kStripColumns, stored.columns - column)));
      std::byte* to = packed + layout.units + unit * unit_bytes;
      (as_fp9 ? put_fp9 : put_fp8)(codes, row, to);
      if (!as_fp9) packed[layout.units - 1 - unit] |= subnormal_groups(codes);
    }
  }
}

template <class F>
void pack(const host::Matrix& stored, std::int64_t tile, std::byte* packed) {
  using Block = typename F::Block;
  const std::int64_t first = tile * kRowTile;
  for (std::int64_t row = 0; row < std::min(kRowTile, stored.rows - first); ++row) {
    const auto* blocks = reinterpret_cast<const Block*>(stored.data + (first + row) * stored.row_bytes);
    if constexpr (F::kProduct == ProductRule::kFloat) {
      auto* elements = reinterpret_cast<Block*>(packed) + row;
      for (std::int64_t column = 0; column < stored.columns; ++column)
        elements[column * kRowTile] = blocks[column];
    } else {
      UnitOf<F> unit;
      for (std::int64_t i = 0; i < stored.columns / kUnitColumns<F>; ++i) {
        unpack_unit<F>(blocks, i, unit);
        put_unit<F>(unit, row, packed + i * UnitLayout<F>::kBytes);
      }
    }
  }
}

}  // namespace

std::int64_t packed_tile_bytes(Format format, std::int64_t columns, const BlockScales& scales, Fp8Form form) {
  return visit_format(format, [&]<class F>() -> std::int64_t {
    if constexpr (F::kProduct == ProductRule::kScaledFloat) {
      const Fp8Layout layout(columns, scales);
      return layout.units +
             layout.unit_count * (form == Fp8Form::kFp9 ? Fp8Layout::kFp9UnitBytes : Fp8Layout::kUnitBytes);
    } else if constexpr (F::kProduct == ProductRule::kFloat) {
      return columns * kRowTile * static_cast<std::int64_t>(sizeof(typename F::Block));
    } else {
      return columns / kUnitColumns<F> * UnitLayout<F>::kBytes;
    }
  });
}

std::int64_t opened_tile_bytes(Format format, std::int64_t columns) {
  return visit_format(format, [&]<class F>() -> std::int64_t {
    if constexpr (is_float_rule(F::kProduct))
      return (columns + kStripColumns - 1) / kStripColumns * kStripColumns * kPlane;  // whole units
    else
      return columns / kUnitColumns<F> * OpenedLayout<F>::kBytes;
  });
}

void pack_tile(Format format, const host::Matrix& stored, std::int64_t tile, std::byte* packed,
               Fp8Form form) {
  std::memset(packed, 0,
              static_cast<std::size_t>(packed_tile_bytes(format, stored.columns, stored.scales, form)));
  visit_format(format, [&]<class F>() {
    if constexpr (F::kProduct == ProductRule::kScaledFloat)
      pack_fp8(stored, tile, form, packed);
    else
      pack<F>(stored, tile, packed);
  });
}

template <Fp8Form form>
constexpr host::Packing kPacking{[](Format format, std::int64_t columns, const BlockScales& scales) {
                                   return packed_tile_bytes(format, columns, scales, form);
                                 },
                                 &opened_tile_bytes,
                                 [](Format format, const host::Matrix& stored, std::int64_t tile,
                                    std::byte* packed) { pack_tile(format, stored, tile, packed, form); }};

const host::Packing& packing(Fp8Form form) {
  return form == Fp8Form::kFp9 ? kPacking<Fp8Form::kFp9> : kPacking<Fp8Form::kFp8>;
}

}  // namespace eider::cpu
