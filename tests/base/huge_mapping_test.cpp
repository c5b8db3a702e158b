#include "base/huge_mapping.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <thread>

#include "tests/support/temp_dir.h"

namespace eider {
namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;

std::string some_bytes(std::size_t count) {
  std::string bytes(count, '\0');
  for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<char>(i * 7 + i / 4096);
  return bytes;
}

TEST(HugeMapping, BeginsAtALargePageAndIsZero) {
  const auto memory = HugeMapping::create(100);
  ASSERT_TRUE(memory.ok());
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory->bytes().data()) % kHugePage, 0u);
  EXPECT_EQ(memory->bytes().size(), kHugePage);
  for (const std::byte byte : memory->bytes()) ASSERT_EQ(byte, std::byte{0});
}

TEST(HugeMapping, HoldsPartsOfAFile) {
  const test::TempDir directory;
  const std::string bytes = some_bytes(3 * kHugePage);
  const auto file = File::open(directory.write("a", bytes), File::Mode::kRead);
  auto memory = HugeMapping::create(3 * kHugePage).value();
  ASSERT_TRUE(memory.map(kHugePage, *file, static_cast<std::int64_t>(2 * kHugePage), kHugePage).ok());
  memory.populate(kHugePage, kHugePage);
  const std::span<std::byte> all = memory.bytes();
  EXPECT_EQ(std::memcmp(all.data() + kHugePage, bytes.data() + 2 * kHugePage, kHugePage), 0);
  all[kHugePage - 1] = std::byte{5};  // its own
  all[2 * kHugePage] = std::byte{6};
  const MappedPages pages = mapped_pages(all);
  EXPECT_GE(pages.resident, static_cast<std::int64_t>(kHugePage));
  EXPECT_LE(pages.huge, pages.resident);
  ASSERT_TRUE(memory.unmap(kHugePage, kHugePage).ok());
  EXPECT_EQ(all[kHugePage], std::byte{0});
  all[kHugePage] = std::byte{7};
}

TEST(HugeMapping, IsReadWhileItsPagesAreReplaced) {
  const test::TempDir directory;
  const std::string bytes = some_bytes(2 * kHugePage);
  const auto file = File::open(directory.write("a", bytes), File::Mode::kRead);
  auto memory = HugeMapping::create(2 * kHugePage).value();
  ASSERT_TRUE(memory.map(0, *file, 0, 2 * kHugePage).ok());
  std::atomic<bool> stop = false;
  std::atomic<int> wrong = 0;
  std::thread reader([&] {
    while (!stop)
      if (std::memcmp(memory.bytes().data(), bytes.data(), bytes.size()) != 0) ++wrong;
  });
  for (int i = 0; i < 50; ++i) {
    const std::size_t offset = i % 2 == 0 ? 0 : kHugePage;
    auto copy = HugeMapping::create(kHugePage).value();
    std::memcpy(copy.bytes().data(), bytes.data() + offset, kHugePage);
    ASSERT_TRUE(memory.replace(offset, std::move(copy)).ok());
  }
  stop = true;
  reader.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace eider
