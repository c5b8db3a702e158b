// The bytes of packed weights, which lie in files of the weight cache: where these change, kPackingVersion in
// cpu_backend.cpp must change too, or other versions of eider would misread those files.
#include <gtest/gtest.h>
#include <xxhash.h>

#include "backend/cpu/cpu_backend.h"
#include "backend/cpu/packed.h"
#include "base/machine.h"
#include "format/all_formats.h"

namespace eider {
namespace {

TEST(PackedLayout, IsTheRecordedOne) {
  std::uint64_t hash = 0;
  for (const Format format : kAllFormats) {
    constexpr std::int64_t kRows = 40, kColumns = 512;
    const std::int64_t row_bytes = format_row_bytes(format, kColumns);
    std::vector<std::byte> stored(static_cast<std::size_t>(kRows * row_bytes));
    std::uint32_t state = 1;
    for (std::byte& byte : stored) byte = std::byte((state = state * 1664525u + 1013904223u) >> 24);
    for (const Fp8Form form : {Fp8Form::kFp8, Fp8Form::kFp9}) {
      if (form == Fp8Form::kFp9 && format != Format::kFP8_E4M3) continue;
      const std::int64_t tile_bytes = cpu::packed_tile_bytes(format, kColumns, {}, form);
      std::vector<std::byte> packed(static_cast<std::size_t>(2 * tile_bytes));
      for (std::int64_t tile = 0; tile < 2; ++tile)
        cpu::pack_tile(format, {stored.data(), row_bytes, kRows, kColumns}, tile,
                       packed.data() + tile * tile_bytes, form);
      hash = XXH3_64bits_withSeed(packed.data(), packed.size(), hash);
    }
  }
  ThreadPool pool(1);
  const Machine machine = detect_machine();
  const auto backend = make_cpu_backend(pool, machine, cpu_isas(machine).front());
  EXPECT_EQ((*backend)->prepared_layout(), 4u);
  const auto fp9 = make_cpu_backend(pool, machine, cpu_isas(machine).front(), Fp8Form::kFp9);
  EXPECT_EQ((*fp9)->prepared_layout(), 1004u);
  EXPECT_EQ(hash, 8271783906050154723u);
}

}  // namespace
}  // namespace eider
