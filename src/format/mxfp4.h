// MXFP4: blocks of 32 columns, E2M1 floats with a power of two (OCP microscaling).
//
//   byte  0   1                         17
//         | e | qs[16]                  |   e: E8M0, the power 2^(e - 127)
//
//   column i: n = low nibble of qs[i] for i < 16, high nibble of qs[i - 16] otherwise
//     value = 2^(e - 127) * E2M1(n) = 2^(e - 128) * kE2m1Values[n] (four_bit.h)
#pragma once

#include "base/float_bits.h"
#include "format/format_traits.h"
#include "format/four_bit.h"

namespace eider {

struct MXFP4 {
  static constexpr Format kFormat = Format::kMXFP4;
  static constexpr const char* kName = "MXFP4";
  static constexpr std::int64_t kBlockElems = 32;
  static constexpr ProductRule kProduct = ProductRule::kInteger32;
  static constexpr bool kHasMin = false;

  struct Block {
    std::uint8_t e;
    std::uint8_t qs[16];
  };
  static_assert(sizeof(Block) == 17);

  /// 2^(e - 128); the two smallest are denormal floats.
  static EIDER_ALWAYS_INLINE float half_of_e8m0(std::uint8_t e) {
    const std::uint32_t exponent = e;
    return bits_float(exponent < 2 ? 0x00200000u << exponent : (exponent - 1) << 23);
  }

  static EIDER_ALWAYS_INLINE void unpack(const Block& block, Unit32& unit) {
    unit.scale = half_of_e8m0(block.e);
    unit.min = 0;
    unpack_four_bit(block.qs, 16, kE2m1Values, unit.code);
  }

  static EIDER_ALWAYS_INLINE void decode(const Block& block, float* values) {
    decode_units<MXFP4>(block, values);
  }
};
static_assert(Integer32Format<MXFP4>);

}  // namespace eider
