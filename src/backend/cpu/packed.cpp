#include "backend/cpu/packed.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

namespace eider::cpu {
namespace {

std::byte byte(int value) {
  return static_cast<std::byte>(value & 255);
}

void put_half(std::byte* at, float value) {
  const std::uint16_t half = float_to_half(value);
  std::memcpy(at, &half, sizeof half);
}

/// The codes of 32 columns of one row into a strip; the strip's bytes are zero before.
template <class F>
void put_codes(const std::int8_t* codes, std::int64_t row, std::byte* strip) {
  constexpr int kBits = UnitLayout<F>::kBits;
  for (int column = 0; column < kStripColumns; ++column) {
    const int code = codes[column] + PackedFormat<F>::kOffset;
    const int group = column / 4;
    const std::int64_t in_plane = row * 4 + column % 4;
    if constexpr (kBits == 8) {
      strip[group * kRowTile * 4 + in_plane] = byte(code);
    } else {
      strip[group / 2 * kRowTile * 4 + in_plane] |= byte((code & 15) << (group % 2 * 4));
      std::byte* high = strip + UnitLayout<F>::kHighPlane;
      if constexpr (kBits == 5) high[in_plane] |= byte(code >> 4 << group);
      if constexpr (kBits == 6)
        high[group / 4 * kRowTile * 4 + in_plane] |= byte(code >> 4 << (group % 4 * 2));
    }
  }
}

template <class F>
void put_unit(const Unit32& unit, std::int64_t row, std::byte* packed) {
  using Layout = UnitLayout<F>;
  put_codes<F>(unit.code, row, packed);
  put_half(packed + Layout::kScales + 2 * row, unit.scale);
  if constexpr (F::kHasMin) put_half(packed + Layout::kMinScales + 2 * row, unit.min);
}

template <class F>
void put_unit(const Unit256& unit, std::int64_t row, std::byte* packed) {
  using Layout = UnitLayout<F>;
  constexpr int kSubScales = PackedFormat<F>::kSubScales;
  for (int strip = 0; strip < 8; ++strip)
    put_codes<F>(unit.code + strip * kStripColumns, row, packed + strip * Layout::kStripBytes);
  for (int j = 0; j < kSubScales; ++j)
    packed[Layout::kSubScales + j * kRowTile + row] = byte(unit.sub_scale[j * (16 / kSubScales)]);
  put_half(packed + Layout::kScales + 2 * row, unit.scale);
  if constexpr (F::kHasMin) {
    for (int j = 0; j < 8; ++j)
      packed[Layout::kMins + (j / 2 * kRowTile + row) * 2 + j % 2] = byte(unit.sub_min[2 * j]);
    put_half(packed + Layout::kMinScales + 2 * row, unit.min_scale);
  }
}

template <class F>
void pack(const std::byte* data, std::int64_t row_bytes, std::int64_t rows, std::int64_t columns,
          std::byte* packed) {
  using Block = typename F::Block;
  for (std::int64_t row = 0; row < rows; ++row) {
    const auto* blocks = reinterpret_cast<const Block*>(data + row * row_bytes);
    if constexpr (F::kProduct == ProductRule::kFloat) {
      auto* elements = reinterpret_cast<Block*>(packed) + row;
      for (std::int64_t column = 0; column < columns; ++column) elements[column * kRowTile] = blocks[column];
    } else {
      std::conditional_t<F::kProduct == ProductRule::kInteger256, Unit256, Unit32> unit;
      for (std::int64_t i = 0; i < columns / F::kBlockElems; ++i) {
        F::unpack(blocks[i], unit);
        put_unit<F>(unit, row, packed + i * UnitLayout<F>::kBytes);
      }
    }
  }
}

}  // namespace

std::int64_t packed_tile_bytes(Format format, std::int64_t columns) {
  return visit_format(format, [&]<class F>() -> std::int64_t {
    if constexpr (F::kProduct == ProductRule::kFloat)
      return columns * kRowTile * static_cast<std::int64_t>(sizeof(typename F::Block));
    else
      return columns / F::kBlockElems * UnitLayout<F>::kBytes;
  });
}

std::int64_t opened_tile_bytes(Format format, std::int64_t columns) {
  return visit_format(format, [&]<class F>() -> std::int64_t {
    if constexpr (F::kProduct == ProductRule::kFloat)
      return columns * kPlane;
    else
      return columns / F::kBlockElems * OpenedLayout<F>::kBytes;
  });
}

std::int64_t packed_bytes(Format format, std::int64_t rows, std::int64_t columns) {
  return (rows + kRowTile - 1) / kRowTile * packed_tile_bytes(format, columns);
}

void pack_tile(Format format, const std::byte* data, std::int64_t row_bytes, std::int64_t rows,
               std::int64_t columns, std::int64_t tile, std::byte* packed) {
  const std::int64_t first = tile * kRowTile;
  std::memset(packed, 0, static_cast<std::size_t>(packed_tile_bytes(format, columns)));
  visit_format(format, [&]<class F>() {
    pack<F>(data + first * row_bytes, row_bytes, std::min(kRowTile, rows - first), columns, packed);
  });
}

}  // namespace eider::cpu
