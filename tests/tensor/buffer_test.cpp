#include "tensor/buffer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>

namespace eider {
namespace {

TEST(Buffer, IsZeroedAndAligned) {
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{64}, std::size_t{1000}}) {
    auto buffer = Buffer::allocate(size);
    ASSERT_TRUE(buffer) << buffer.error().message();
    EXPECT_EQ(buffer->size(), size);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer->data()) % 64, 0u);
    EXPECT_TRUE(
        std::all_of(buffer->data(), buffer->data() + size, [](std::byte b) { return b == std::byte{0}; }));
  }
}

TEST(Buffer, MovesWithoutCopying) {
  auto buffer = Buffer::allocate(8);
  ASSERT_TRUE(buffer) << buffer.error().message();
  std::byte* data = buffer->data();
  data[7] = std::byte{5};
  const Buffer moved = std::move(*buffer);
  EXPECT_EQ(moved.data(), data);
  EXPECT_EQ(moved.data()[7], std::byte{5});
}

TEST(Buffer, SaysWhenMemoryCannotBeHad) {
  const auto buffer = Buffer::allocate(SIZE_MAX);
  ASSERT_FALSE(buffer);
  EXPECT_EQ(buffer.error().message(), "cannot allocate 18446744073709551615 bytes");
}

}  // namespace
}  // namespace eider
