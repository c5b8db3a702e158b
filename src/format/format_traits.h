// The concept every storage format meets, and the two integer views that products read. A format is one
// header beside this one: its picture, its block, its scalar decode. To add one: docs/ADD_A_FORMAT.md.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>

#include "base/inline.h"
#include "format/format.h"

namespace eider {

/// How docs/NUMERICS.md multiplies a format.
enum class ProductRule : std::uint8_t {
  kFloat,       ///< units of 32 columns, fused multiply-add chains
  kInteger32,   ///< unit = 32 columns, activations quantised in groups of 32
  kInteger256,  ///< unit = 256 columns, activations quantised in groups of 256
};

/// 32 columns of an integer format: weight[i] = scale * code[i] + min (min = 0 where the format has none).
struct Unit32 {
  float scale;
  float min;
  std::int8_t code[32];
};

/// 256 columns of an integer format in sub-blocks of 16, j = i / 16:
/// weight[i] = scale * sub_scale[j] * code[i] - min_scale * sub_min[j].
/// Formats with sub-blocks of 32 give each scale twice.
struct Unit256 {
  float scale;
  float min_scale;
  std::int16_t sub_scale[16];
  std::int16_t sub_min[16];
  std::int8_t code[256];
};

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

/// A format whose product unit is integers: unpack() gives the codes of one unit.
template <class F>
concept Integer32Format = StorageFormat<F> && F::kProduct == ProductRule::kInteger32 &&
                          requires(const typename F::Block& block, Unit32& unit) { F::unpack(block, unit); };
template <class F>
concept Integer256Format = StorageFormat<F> && F::kProduct == ProductRule::kInteger256 &&
                           requires(const typename F::Block& block, Unit256& unit) { F::unpack(block, unit); };
// clang-format on

/// decode() of an integer format from its unit, in the roundings of the formats' published dequantisation: a
/// scale times its sub-scale first, then times the code, then the minimum. (Adding a minimum of 0 would turn
/// -0 into +0.)
template <class F>
EIDER_ALWAYS_INLINE void decode_unit(const typename F::Block& block, float* values) {
  if constexpr (F::kProduct == ProductRule::kInteger32) {
    Unit32 unit;
    F::unpack(block, unit);
    for (int i = 0; i < 32; ++i) {
      const float product = unit.scale * static_cast<float>(unit.code[i]);
      values[i] = F::kHasMin ? product + unit.min : product;
    }
  } else {
    Unit256 unit;
    F::unpack(block, unit);
    for (int sub_block = 0; sub_block < 16; ++sub_block) {
      const float scale = unit.scale * static_cast<float>(unit.sub_scale[sub_block]);
      const float min = unit.min_scale * static_cast<float>(unit.sub_min[sub_block]);
      for (int i = 16 * sub_block; i < 16 * sub_block + 16; ++i) {
        const float product = scale * static_cast<float>(unit.code[i]);
        values[i] = F::kHasMin ? product - min : product;
      }
    }
  }
}

}  // namespace eider
