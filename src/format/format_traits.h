// The concept every storage format meets, and the integer views that products read. A format is one header
// beside this one: its picture, its block, its scalar decode. To add one: docs/ADD_A_FORMAT.md.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>

#include "base/inline.h"
#include "format/format.h"

namespace eider {

/// How docs/NUMERICS.md multiplies a format.
enum class ProductRule : std::uint8_t {
  kFloat,            ///< units of 32 columns, fused multiply-add chains
  kScaledFloat,      ///< the same of scaled inputs, with scales beside the codes (block_scales.h)
  kInteger32,        ///< unit = 32 columns, activations quantised in groups of 32
  kInteger32Halves,  ///< the same with a scale for each 16 columns
  kInteger256,       ///< unit = 256 columns, activations quantised in groups of 256
};

/// Whether products are chains of floats rather than dot products of integers.
constexpr bool is_float_rule(ProductRule rule) {
  return rule == ProductRule::kFloat || rule == ProductRule::kScaledFloat;
}

/// 32 columns of an integer format: weight[i] = scale * code[i] + min (min = 0 where the format has none).
struct Unit32 {
  float scale;
  float min;
  std::int8_t code[32];
};

/// 32 columns of an integer format with two scales: weight[i] = scale[i / 16] * code[i].
struct Unit32Halves {
  float scale[2];
  std::int8_t code[32];
};

/// 256 columns of an integer format in sub-blocks of 16, j = i / 16:
/// weight[i] = scale * sub_scale[j] * code[i] - min_scale * sub_min[j].
/// Formats with sub-blocks of 32 give each scale twice. Constant factors that are powers of two are part of
/// `scale`, so that sub-scales and codes are integers.
struct Unit256 {
  float scale;
  float min_scale;
  std::int16_t sub_scale[16];
  std::int16_t sub_min[16];
  std::int8_t code[256];
};

/// For formats without minima.
EIDER_ALWAYS_INLINE void clear_minima(Unit256& unit) {
  unit.min_scale = 0;
  for (int j = 0; j < 16; ++j) unit.sub_min[j] = 0;
}

/// The scale of columns 32 * j .. 32 * j + 31.
EIDER_ALWAYS_INLINE void set_scale_of_32(Unit256& unit, int j, int scale) {
  unit.sub_scale[2 * j] = unit.sub_scale[2 * j + 1] = static_cast<std::int16_t>(scale);
}

// clang-format off
/// What every format says of itself. decode() gives the published dequantisation, value by value, in its roundings.
template <class F>
concept StorageFormat = requires(const typename F::Block& block, float* values) {
  { F::kFormat } -> std::convertible_to<Format>;
  { F::kName } -> std::convertible_to<const char*>;
  { F::kBlockElems } -> std::convertible_to<std::int64_t>;
  { F::kProduct } -> std::convertible_to<ProductRule>;
  { F::kHasMin } -> std::convertible_to<bool>;
  F::decode(block, values);
};

/// unpack() gives the codes of the one unit of a block, or of unit `part` = 0.. of a block that holds several.
template <class F, class Unit>
concept UnpacksTo = requires(const typename F::Block& block, Unit& unit) { F::unpack(block, unit); } ||
                    requires(const typename F::Block& block, int part, Unit& unit) { F::unpack(block, part, unit); };

/// The formats whose product unit is integers.
template <class F>
concept Integer32Format =
    StorageFormat<F> && F::kProduct == ProductRule::kInteger32 && UnpacksTo<F, Unit32>;
template <class F>
concept Integer32HalvesFormat =
    StorageFormat<F> && F::kProduct == ProductRule::kInteger32Halves && UnpacksTo<F, Unit32Halves>;
template <class F>
concept Integer256Format =
    StorageFormat<F> && F::kProduct == ProductRule::kInteger256 && UnpacksTo<F, Unit256>;
// clang-format on

/// Columns of a product unit.
template <class F>
inline constexpr std::int64_t kUnitColumns = F::kProduct == ProductRule::kInteger256 ? 256 : 32;

/// Unit `index` of a row of blocks, whether a block holds one or several.
template <class F, class Unit>
EIDER_ALWAYS_INLINE void unpack_unit(const typename F::Block* blocks, std::int64_t index, Unit& unit) {
  constexpr std::int64_t kParts = F::kBlockElems / kUnitColumns<F>;
  if constexpr (kParts == 1)
    F::unpack(blocks[index], unit);
  else
    F::unpack(blocks[index / kParts], static_cast<int>(index % kParts), unit);
}

/// The weights of a unit in the roundings of the formats' published dequantisation: a scale times its
/// sub-scale first, then times the code, then the minimum. (Adding a minimum of 0 would turn -0 into +0.)
template <class F>
EIDER_ALWAYS_INLINE void unit_values(const Unit32& unit, float* values) {
  for (int i = 0; i < 32; ++i) {
    const float product = unit.scale * static_cast<float>(unit.code[i]);
    values[i] = F::kHasMin ? product + unit.min : product;
  }
}
template <class F>
EIDER_ALWAYS_INLINE void unit_values(const Unit32Halves& unit, float* values) {
  for (int i = 0; i < 32; ++i) values[i] = unit.scale[i / 16] * static_cast<float>(unit.code[i]);
}
template <class F>
EIDER_ALWAYS_INLINE void unit_values(const Unit256& unit, float* values) {
  for (int sub_block = 0; sub_block < 16; ++sub_block) {
    const float scale = unit.scale * static_cast<float>(unit.sub_scale[sub_block]);
    const float min = unit.min_scale * static_cast<float>(unit.sub_min[sub_block]);
    for (int i = 16 * sub_block; i < 16 * sub_block + 16; ++i) {
      const float product = scale * static_cast<float>(unit.code[i]);
      values[i] = F::kHasMin ? product - min : product;
    }
  }
}

/// The view that a product rule reads: UnitOf<Q4_0> is Unit32.
template <ProductRule rule>
struct UnitOfRule;
template <>
struct UnitOfRule<ProductRule::kInteger32> {
  using Unit = Unit32;
};
template <>
struct UnitOfRule<ProductRule::kInteger32Halves> {
  using Unit = Unit32Halves;
};
template <>
struct UnitOfRule<ProductRule::kInteger256> {
  using Unit = Unit256;
};
template <class F>
using UnitOf = typename UnitOfRule<F::kProduct>::Unit;

/// decode() of an integer format from its units.
template <class F>
EIDER_ALWAYS_INLINE void decode_units(const typename F::Block& block, float* values) {
  for (std::int64_t index = 0; index < F::kBlockElems / kUnitColumns<F>; ++index) {
    UnitOf<F> unit;
    unpack_unit<F>(&block, index, unit);
    unit_values<F>(unit, values + index * kUnitColumns<F>);
  }
}

}  // namespace eider
