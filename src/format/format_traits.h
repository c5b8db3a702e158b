// The concept every storage format meets, and the two integer views that products read. A format is one header beside
// this one: its picture, its block, its scalar decode. To add one: docs/ADD_A_FORMAT.md.
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

/// 256 columns of an integer format: weight[i] = scale * sub_scale[i / 16] * code[i] - min_scale * sub_min[i / 16].
/// Formats with sub-blocks of 32 give each scale twice.
struct Unit256 {
  float scale;
  float min_scale;
  std::int16_t sub_scale[16];
  std::int16_t sub_min[16];
  std::int8_t code[256];
};

/// What every format says of itself. decode() gives the published dequantisation, value by value, in its roundings.
template <class F>
concept StorageFormat = requires(const typename F::Block& block, float* values) {
  { F::kFormat } -> std::convertible_to<Format>;
  { F::kName } -> std::convertible_to<const char*>;
  { F::kBlockElems } -> std::convertible_to<std::int64_t>;
  { F::kProduct } -> std::convertible_to<ProductRule>;
  { F::kHasMin } -> std::convertible_to<bool>;
  { F::decode(block, values) };
};

/// A format whose product unit is integers: unpack() gives the codes of one unit.
template <class F>
concept Integer32Format = StorageFormat<F> && F::kProduct == ProductRule::kInteger32 &&
                          requires(const typename F::Block& block, Unit32& unit) { F::unpack(block, unit); };
template <class F>
concept Integer256Format = StorageFormat<F> && F::kProduct == ProductRule::kInteger256 &&
                           requires(const typename F::Block& block, Unit256& unit) { F::unpack(block, unit); };

}  // namespace eider
