// FP8_E4M3: 8-bit floats ("e4m3fn"), whose scales lie in a table beside them (block_scales.h).
//
//   bit   7      6          3 2        0
//         | sign | exponent  | mantissa |   one element a block; exponent bias 7
//
//   exponent > 0: value = (1 + mantissa / 8) * 2^(exponent - 7); exponent 0: mantissa * 2^-9
//   0x7f and 0xff are NaN, which weights may not be; there are no infinities, so the largest value is 448
#pragma once

#include "base/float_bits.h"
#include "format/format_traits.h"

namespace eider {

struct FP8_E4M3 {
  static constexpr Format kFormat = Format::kFP8_E4M3;
  static constexpr const char* kName = "FP8";
  static constexpr std::int64_t kBlockElems = 1;
  static constexpr ProductRule kProduct = ProductRule::kScaledFloat;
  static constexpr bool kHasMin = false;

  struct Block {
    std::uint8_t code;
  };
  static_assert(sizeof(Block) == 1);

  static constexpr EIDER_ALWAYS_INLINE bool is_nan(std::uint8_t code) { return (code & 0x7f) == 0x7f; }
  static constexpr EIDER_ALWAYS_INLINE bool is_subnormal(std::uint8_t code) {
    return (code & 0x78) == 0 && (code & 0x07) != 0;
  }

  /// The value times 2^-120: moving the bits is all that it takes. Of codes that are not NaN.
  static EIDER_ALWAYS_INLINE float small_value(Block block) {
    return bits_float((block.code & 0x80u) << 24 | (block.code & 0x7fu) << 20);
  }
  static EIDER_ALWAYS_INLINE void decode(const Block& block, float* values) {
    values[0] = is_nan(block.code) ? bits_float(0x7fc00000u) : small_value(block) * 0x1p120f;
  }
};
static_assert(StorageFormat<FP8_E4M3>);

}  // namespace eider
