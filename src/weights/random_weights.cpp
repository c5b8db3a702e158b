// First every byte is random, then each block's scales are overwritten, with what their own random bits pick
// out of a narrow range; codes stay as they are, but for FP8's. Scales are normal halves in every format.
#include "weights/random_weights.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "base/float_bits.h"
#include "base/random.h"
#include "format/storage_format.h"

namespace eider {
namespace {

constexpr double kDeviation = kRandomWeightDeviation;
constexpr std::int64_t kDrawBytes = 16;

/// Root mean square of codes spread evenly: of n signed ones, -n/2 .. n/2 - 1, and of unsigned ones about
/// their middle, (n - 1) / 2.
constexpr double kSigned3 = 2.345, kSigned4 = 4.637, kSigned5 = 9.247, kSigned6 = 18.480, kSigned8 = 73.47;
constexpr double kCentered2 = 1.118, kCentered4 = 4.610, kCentered5 = 9.233;
constexpr float kMiddle2 = 1.5F, kMiddle4 = 7.5F, kMiddle5 = 15.5F;
/// Of the values of IQ4_NL, and of the codes of the IQ grids as the formats' headers unpack them.
constexpr double kIq4 = 67.44, kIq3Xxs = 15.424, kIq3S = 7.594, kIq2Xxs = 23.118, kIq2Xs = 24.217;
constexpr double kIq2S = 24.430, kIq1 = 6.247;
/// Of sub-scales: odd numbers up to 15 and up to 31, all from 4 to 11 and from 16 to 31.
constexpr double kOddTo15 = 9.220, kOddTo31 = 18.466, k4To11 = 7.826, k16To31 = 23.948;

/// 0.75 to 1.25 times `typical`, of either sign.
float pick_scale(std::uint16_t random, double typical) {
  constexpr double kRootMeanSquare = 1.0103;  // of the factor
  const double factor = 0.75 + 0.5 * (random & 0x7fff) / 0x8000;
  const double magnitude = typical * factor / kRootMeanSquare;
  return static_cast<float>((random & 0x8000) != 0 ? -magnitude : magnitude);
}

void shape_block(F32::Block& block) {
  constexpr double kUnit = kDeviation * 1.7320508 / 0x1p31;
  block.value = static_cast<float>((static_cast<std::int32_t>(float_bits(block.value)) | 1) * kUnit);
}

/// Of the 16 random bits of a half-sized float.
float uniform(std::uint16_t random) {
  constexpr double kUnit = kDeviation * 1.7320508 / 0x1p15;
  return static_cast<float>((static_cast<std::int16_t>(random) | 1) * kUnit);
}
void shape_block(F16::Block& block) {
  block.half = float_to_half(uniform(block.half));
}
void shape_block(BF16::Block& block) {
  block.upper = float_to_bfloat16(uniform(block.upper));
}

/// Codes of normally distributed weights of deviation 107, as a block of 128 x 128 has them whose largest is
/// 448: magnitudes in the middle of each 128th part.
constexpr std::array<std::uint8_t, 128> kNormalCodes = {
    48,  61,  66,  71,  73,  76,  78,  80,  81,  82,  83,  84,  85,  86,  87,  88,  89,  89,  90,
    90,  91,  91,  92,  92,  93,  93,  94,  95,  95,  96,  96,  96,  97,  97,  97,  97,  98,  98,
    98,  99,  99,  99,  99,  100, 100, 100, 101, 101, 101, 102, 102, 102, 102, 103, 103, 103, 104,
    104, 104, 104, 104, 105, 105, 105, 105, 105, 105, 106, 106, 106, 106, 106, 106, 107, 107, 107,
    107, 107, 108, 108, 108, 108, 108, 109, 109, 109, 109, 109, 110, 110, 110, 110, 111, 111, 111,
    111, 112, 112, 112, 112, 112, 112, 113, 113, 113, 113, 113, 113, 114, 114, 114, 114, 114, 115,
    115, 115, 115, 116, 116, 116, 117, 117, 118, 118, 119, 120, 120, 122};
/// Where the first of these parts ends. Below it magnitudes are nearly uniform.
constexpr float kFirstPart = 1.0477f;

/// The code of a magnitude in 0..1.
std::uint8_t code_of_small(float magnitude) {
  if (magnitude < 0x1p-6f) return static_cast<std::uint8_t>(std::lrint(magnitude * 0x1p9f));
  return static_cast<std::uint8_t>(((float_bits(magnitude) + (1u << 19)) >> 20) - (120u << 3));
}

/// `index`: of the block, which stands in for the random bits that one byte lacks.
void shape_fp8(FP8_E4M3::Block& block, std::int64_t index) {
  const std::uint8_t sign = block.code & 0x80, part = block.code & 0x7f;
  std::uint8_t magnitude = kNormalCodes[part];
  if (part == 0) {
    const std::uint32_t more = static_cast<std::uint32_t>(index) * 2654435761u >> 16;
    magnitude = code_of_small(static_cast<float>(more) * (kFirstPart / 65536));
  }
  block.code = sign | magnitude;
}

void shape_block(Q4_0::Block& block) {
  block.d = float_to_half(pick_scale(block.d, kDeviation / kSigned4));
}
void shape_block(Q5_0::Block& block) {
  block.d = float_to_half(pick_scale(block.d, kDeviation / kSigned5));
}
void shape_block(Q8_0::Block& block) {
  block.d = float_to_half(pick_scale(block.d, kDeviation / kSigned8));
  for (std::int8_t& code : block.qs) code = code == -128 ? std::int8_t{0} : code;  // no quantiser writes it
}

/// The minimum puts the middle code at 0.
template <class Block>
void shape_with_min(Block& block, double code_rms, float middle) {
  const float scale = pick_scale(block.d, kDeviation / code_rms);
  block.d = float_to_half(scale);
  block.m = float_to_half(-middle * scale);
}
void shape_block(Q4_1::Block& block) {
  shape_with_min(block, kCentered4, kMiddle4);
}
void shape_block(Q5_1::Block& block) {
  shape_with_min(block, kCentered5, kMiddle5);
}

/// Sub-scales of 8 to 23, and the same minima, so that dmin = middle * d puts the middle code at 0.
template <class Block>
void shape_superblock(Block& block, double code_rms, float middle) {
  constexpr double kSubScaleRms = 16.17;
  std::array<std::uint8_t, 8> sub_scale{};
  for (std::size_t j = 0; j < 8; ++j) sub_scale[j] = static_cast<std::uint8_t>(8 + (block.scales[j] & 15));
  for (std::size_t j = 0; j < 4; ++j) {
    const int low = sub_scale[j], high = sub_scale[j + 4];
    block.scales[j] = block.scales[j + 4] = static_cast<std::uint8_t>(low | high >> 4 << 6);
    block.scales[j + 8] = static_cast<std::uint8_t>((high & 15) | (high & 15) << 4);
  }
  const float scale = pick_scale(block.d, kDeviation / (code_rms * kSubScaleRms));
  block.d = float_to_half(scale);
  block.dmin = float_to_half(middle * scale);
}
void shape_block(Q4_K::Block& block) {
  shape_superblock(block, kCentered4, kMiddle4);
}
void shape_block(Q5_K::Block& block) {
  shape_superblock(block, kCentered5, kMiddle5);
}
void shape_block(Q6_K::Block& block) {
  for (std::int8_t& scale : block.scales) {
    const int magnitude = 4 + (scale & 7);
    scale = static_cast<std::int8_t>(scale < 0 ? -magnitude : magnitude);
  }
  block.d = float_to_half(pick_scale(block.d, kDeviation / (kSigned6 * k4To11)));
}

void shape_block(Q2_K::Block& block) {
  for (std::uint8_t& scale : block.scales) scale = static_cast<std::uint8_t>((4 + (scale & 7)) * 0x11);
  const float scale = pick_scale(block.d, kDeviation / (kCentered2 * k4To11));
  block.d = float_to_half(scale);
  block.dmin = float_to_half(kMiddle2 * scale);
}
/// Upper bits of all ones make the stored scales 48 to 63, which are 16 to 31.
void shape_block(Q3_K::Block& block) {
  for (int j = 8; j < 12; ++j) block.scales[j] = 0xff;
  block.d = float_to_half(pick_scale(block.d, kDeviation / (kSigned3 * k16To31)));
}
void shape_block(IQ4_XS::Block& block) {
  block.scales_h = 0xffff;
  block.d = float_to_half(pick_scale(block.d, kDeviation / (kIq4 * k16To31)));
}
void shape_block(IQ4_NL::Block& block) {
  block.d = float_to_half(pick_scale(block.d, kDeviation / kIq4));
}

/// Sub-scales of the IQ grids stay random; weights are `multiple` * d * sub-scale * code.
template <class Block>
void shape_grid(Block& block, double multiple, double code_rms, double sub_scale_rms) {
  block.d = float_to_half(pick_scale(block.d, kDeviation / (multiple * code_rms * sub_scale_rms)));
}
void shape_block(IQ3_XXS::Block& block) {
  shape_grid(block, 0.5, kIq3Xxs, kOddTo31);
}
void shape_block(IQ3_S::Block& block) {
  shape_grid(block, 1, kIq3S, kOddTo31);
}
void shape_block(IQ2_XXS::Block& block) {
  shape_grid(block, 0.125, kIq2Xxs, kOddTo31);
}
void shape_block(IQ2_XS::Block& block) {
  shape_grid(block, 0.125, kIq2Xs, kOddTo31);
}
void shape_block(IQ2_S::Block& block) {
  shape_grid(block, 0.125, kIq2S, kOddTo31);
}
void shape_block(IQ1_S::Block& block) {
  shape_grid(block, 0.125, kIq1, kOddTo15);
}
void shape_block(IQ1_M::Block& block) {
  const float scale = pick_scale(IQ1_M::scale_bits(block), kDeviation / (0.125 * kIq1 * kOddTo15));
  IQ1_M::set_scale_bits(block, float_to_half(scale));
}

void shape_block(TQ1_0::Block& block) {
  constexpr double kDigitRms = 0.8173;  // of a random byte, 0 a little less often than -1
  block.d = float_to_half(pick_scale(block.d, kDeviation / kDigitRms));
}
void shape_block(TQ2_0::Block& block) {
  constexpr double kCodeRms = 0.7071;
  for (std::uint8_t& codes : block.qs) {
    const int threes = codes & codes >> 1 & 0x55;  // no quantiser writes 3: it becomes 1, which is 0
    codes = static_cast<std::uint8_t>(codes & ~(threes << 1));
  }
  block.d = float_to_half(pick_scale(block.d, kDeviation / kCodeRms));
}
void shape_block(Q1_0::Block& block) {
  block.d = float_to_half(pick_scale(block.d, kDeviation));
}

/// The values of E2M1 have a root mean square of 5.852: these scales give 0.02.
void shape_block(MXFP4::Block& block) {
  static_assert(kDeviation == 0.02);
  block.e = block.e < 176 ? 120 : 119;  // 2^-8 and 2^-9
}
void shape_block(NVFP4::Block& block) {
  static_assert(kDeviation == 0.02);
  constexpr std::array<std::uint8_t, 8> kScales = {2, 3, 3, 3, 3, 4, 4, 5};  // denormal, in units of 2^-10
  for (std::uint8_t& scale : block.d) scale = kScales[scale % 8];
}

/// Bytes [begin, end) of the stream of `seed`; `begin` is a multiple of kDrawBytes.
void fill_bytes(std::uint64_t seed, std::int64_t begin, std::int64_t end, std::byte* out) {
  const std::array<std::uint32_t, 2> key = {static_cast<std::uint32_t>(seed),
                                            static_cast<std::uint32_t>(seed >> 32)};
  for (std::int64_t at = begin; at < end; at += kDrawBytes) {
    const auto draw = static_cast<std::uint64_t>(at / kDrawBytes);
    const auto words =
        philox4x32_10(key, {static_cast<std::uint32_t>(draw), static_cast<std::uint32_t>(draw >> 32), 0, 0});
    std::memcpy(out + at, words.data(), static_cast<std::size_t>(std::min(kDrawBytes, end - at)));
  }
}

}  // namespace

void fill_random_weights(Format format, std::uint64_t seed, std::int64_t blocks, std::byte* out,
                         ThreadPool& pool) {
  visit_format(format, [&]<class F>() {
    constexpr std::int64_t kBytes = sizeof(typename F::Block);
    // A multiple of 16 blocks begins at a whole draw; small enough to be shaped while it is in a cache.
    constexpr std::int64_t kPiece = 1024;
    pool.run([&](int thread) {
      const auto [begin, end] = ThreadPool::share(blocks, kPiece, thread, pool.size());
      for (std::int64_t first = begin; first < end; first += kPiece) {
        const std::int64_t last = std::min(end, first + kPiece);
        fill_bytes(seed, first * kBytes, last * kBytes, out);
        auto* block = reinterpret_cast<typename F::Block*>(out);
        for (std::int64_t i = first; i < last; ++i) {
          if constexpr (F::kFormat == Format::kFP8_E4M3)
            shape_fp8(block[i], i);
          else
            shape_block(block[i]);
        }
      }
    });
  });
}

}  // namespace eider
