// NVFP4: blocks of 64 columns, E2M1 floats; each 16 columns have a scale. A block is two units of 32.
//
//   byte  0      4                                    36
//         | d[4] | qs[32]                             |   d: E4M3 without sign
//
//   column i, j = i / 16, l = i % 16
//     n = low nibble of qs[8 * j + l] for l < 8, high nibble of qs[8 * j + l - 8] otherwise
//     value = E4M3(d[j]) * E2M1(n) = E4M3(d[j]) / 2 * kE2m1Values[n] (four_bit.h)
#pragma once

#include "base/float_bits.h"
#include "format/format_traits.h"
#include "format/four_bit.h"

namespace eider {

struct NVFP4 {
  static constexpr Format kFormat = Format::kNVFP4;
  static constexpr const char* kName = "NVFP4";
  static constexpr std::int64_t kBlockElems = 64;
  static constexpr ProductRule kProduct = ProductRule::kInteger32Halves;
  static constexpr bool kHasMin = false;

  struct Block {
    std::uint8_t d[4];
    std::uint8_t qs[32];
  };
  static_assert(sizeof(Block) == 36);

  /// Half the value of an E4M3 number without its sign; 0 for NaN (0x7f), and 0xff is no NaN: as published.
  static EIDER_ALWAYS_INLINE float half_of_ue4m3(std::uint8_t bits) {
    // The multiplication moves the exponent, and makes the denormal numbers normal floats.
    return bits == 0x7f ? 0.0f : bits_float((bits & 0x7fu) << 20) * 0x1p119f;
  }

  static EIDER_ALWAYS_INLINE void unpack(const Block& block, int part, Unit32Halves& unit) {
    for (int half = 0; half < 2; ++half) {
      const int sub_block = 2 * part + half;
      unit.scale[half] = half_of_ue4m3(block.d[sub_block]);
      unpack_four_bit(block.qs + 8 * sub_block, 8, kE2m1Values, unit.code + 16 * half);
    }
  }

  static EIDER_ALWAYS_INLINE void decode(const Block& block, float* values) {
    decode_units<NVFP4>(block, values);
  }
};
static_assert(Integer32HalvesFormat<NVFP4>);

}  // namespace eider
