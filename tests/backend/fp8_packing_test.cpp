// The packed forms of FP8 by their picture in packed.h, and slices of the columns.
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "backend/cpu/packed.h"
#include "format/fp9.h"
#include "tests/support/random_floats.h"

namespace eider::test {
namespace {

using cpu::Fp8Layout;
using cpu::kPlane;

constexpr Fp8Form kForms[] = {Fp8Form::kFp8, Fp8Form::kFp9};

std::int64_t unit_bytes(Fp8Form form) {
  return form == Fp8Form::kFp9 ? 1152 : 1024;
}

/// Random codes that are no NaN.
std::vector<std::byte> random_codes(std::int64_t count) {
  std::vector<std::byte> codes;
  RandomFloats random(7);
  while (static_cast<std::int64_t>(codes.size()) < count) {
    const auto code = static_cast<std::uint8_t>(random.below(256));
    if (!FP8_E4M3::is_nan(code)) codes.push_back(std::byte{code});
  }
  return codes;
}

std::vector<std::byte> packed_tile(const host::Matrix& matrix, std::int64_t tile, Fp8Form form) {
  std::vector<std::byte> packed(static_cast<std::size_t>(
      cpu::packed_tile_bytes(Format::kFP8_E4M3, matrix.columns, matrix.scales, form)));
  cpu::pack_tile(Format::kFP8_E4M3, matrix, tile, packed.data(), form);
  return packed;
}

/// The value in a packed unit, by the picture.
float value_at(const std::byte* unit, std::int64_t row, std::int64_t column, Fp8Form form) {
  const std::int64_t at = column / 4 * kPlane + row * 4 + column % 4;
  float value;
  if (form == Fp8Form::kFp8) {
    FP8_E4M3::decode({static_cast<std::uint8_t>(unit[at])}, &value);
  } else {
    std::uint32_t signs;
    std::memcpy(&signs, unit + row * 4, 4);
    const std::int64_t group = column / 4;
    const std::int64_t bits[] = {15 - 2 * group, 14 - 2 * group, 31 - 2 * group, 30 - 2 * group};
    value = Fp9{static_cast<std::uint8_t>(unit[kPlane + at]), (signs >> bits[column % 4] & 1) != 0}.value();
  }
  return value;
}

TEST(Fp8Packing, HoldsEveryWeightAndZerosAroundThem) {
  constexpr std::int64_t kRows = 40, kColumns = 102;
  const std::vector<std::byte> codes = random_codes(kRows * kColumns);
  const host::Matrix matrix{codes.data(), kColumns, kRows, kColumns, {}};
  const Fp8Layout layout(kColumns, matrix.scales);
  for (const Fp8Form form : kForms)
    for (std::int64_t tile = 0; tile < 2; ++tile) {
      const std::vector<std::byte> packed = packed_tile(matrix, tile, form);
      for (std::int64_t row = 0; row < 32; ++row)
        for (std::int64_t column = 0; column < 128; ++column) {
          const std::int64_t stored_row = tile * 32 + row;
          float expected = 0;
          if (stored_row < kRows && column < kColumns)
            FP8_E4M3::decode(
                {static_cast<std::uint8_t>(codes[static_cast<std::size_t>(stored_row * kColumns + column)])},
                &expected);
          const std::byte* unit = packed.data() + layout.units + column / 32 * unit_bytes(form);
          const float value = value_at(unit, row, column % 32, form);
          ASSERT_EQ(float_bits(value), float_bits(expected))
              << fp8_form_name(form) << ", row " << stored_row << ", column " << column;
        }
    }
}

TEST(Fp8Packing, TellsGroupsWithSubnormals) {
  constexpr std::int64_t kRows = 32, kColumns = 96;
  // +-2^-6, the least code that is normal, and zeros; two subnormals.
  std::vector<std::byte> codes(kRows * kColumns, std::byte{0x08});
  for (std::size_t i = 0; i < codes.size(); i += 3) codes[i] = i % 2 == 0 ? std::byte{0x88} : std::byte{0x80};
  codes[31 * kColumns + 32 + 5] = std::byte{0x07};  // unit 1, group 1
  codes[64 + 31] = std::byte{0x81};                 // unit 2, group 7
  const host::Matrix matrix{codes.data(), kColumns, kRows, kColumns, {}};
  const std::vector<std::byte> packed = packed_tile(matrix, 0, Fp8Form::kFp8);
  const std::byte* units = packed.data() + Fp8Layout(kColumns, matrix.scales).units;
  EXPECT_EQ(units[-1], std::byte{0});
  EXPECT_EQ(units[-2], std::byte{1 << 1});
  EXPECT_EQ(units[-3], std::byte{1 << 7});
}

// 768 columns for 6, 12 or 24 workers: scales of 128 columns are cut to 64 or 32, and a worker's tile is a
// part of the whole one.
TEST(Fp8Packing, SlicesArePartsOfTheWhole) {
  constexpr std::int64_t kRows = 150, kColumns = 768;
  const std::vector<std::byte> codes = random_codes(kRows * kColumns);
  for (const Fp8Form form : kForms)
    for (const std::int64_t width : {128, 64, 32}) {
      std::vector<float> table;
      for (std::int64_t row_block = 0; row_block < 2; ++row_block)
        for (std::int64_t column = 0; column < kColumns; column += width)
          table.push_back(static_cast<float>(1 + row_block * 10 + column / 128) * 0x1p-8f);
      const std::int64_t slices = kColumns / width;
      const BlockScales scales{table.data(), 128, width, slices, 0};
      const host::Matrix whole{codes.data(), kColumns, kRows, kColumns, scales};
      const Fp8Layout layout(kColumns, scales), part(width, scales);
      for (std::int64_t tile = 0; tile < 5; ++tile) {
        const std::vector<std::byte> all = packed_tile(whole, tile, form);
        for (std::int64_t slice = 0; slice < slices; ++slice) {
          BlockScales cut = scales;
          cut.values += slice;
          const std::vector<std::byte> own =
              packed_tile({codes.data() + slice * width, kColumns, kRows, width, cut}, tile, form);
          const std::int64_t units = width / 32, first = slice * units;
          EXPECT_EQ(std::memcmp(own.data() + part.unit_scales, all.data() + layout.unit_scales + first * 4,
                                static_cast<std::size_t>(units * 4)),
                    0)
              << "scales of slice " << slice << " of " << width;
          EXPECT_EQ(std::memcmp(own.data() + part.units, all.data() + layout.units + first * unit_bytes(form),
                                static_cast<std::size_t>(units * unit_bytes(form))),
                    0)
              << "units of slice " << slice << " of " << width;
        }
        float first_scale;
        std::memcpy(&first_scale, all.data() + layout.unit_scales + 4 * 4, 4);  // column 128
        EXPECT_EQ(first_scale, static_cast<float>(2 + tile / 4 * 10) * 0x1p-8f * 0x1p17f);
      }
    }
}

}  // namespace
}  // namespace eider::test
