#include "runtime/kv_pool.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "tests/runtime/fake_backend.h"

namespace eider {
namespace {

using test::FakeBackend;
using test::full_kind;
using test::sliding_kind;

TEST(KvPool, HandsOutBlocksThatDoNotOverlap) {
  FakeBackend backend;
  KvPool pool(backend, {full_kind(), {"wide", 3, 2, 4, 0}}, KvType::kF32, 0);
  std::set<std::pair<std::byte*, std::byte*>> ranges;  // [begin, end) of every block
  for (int kind = 0; kind < 2; ++kind) {
    const std::int64_t bytes = kv_block_bytes(pool.kinds()[static_cast<std::size_t>(kind)], KvType::kF32);
    for (int i = 0; i < 50; ++i) {
      auto block = pool.take(kind);
      ASSERT_TRUE(block.ok());
      std::fill(*block, *block + bytes, std::byte{1});  // asan notices what is not ours
      ranges.insert({*block, *block + bytes});
    }
    EXPECT_EQ(pool.blocks_in_use(kind), 50);
  }
  std::byte* end = nullptr;
  for (const auto& range : ranges) {
    EXPECT_GE(range.first, end);
    end = range.second;
  }
  EXPECT_EQ(ranges.size(), 100u);
}

TEST(KvPool, GrowsGeometrically) {
  FakeBackend backend;
  KvPool pool(backend, {full_kind()}, KvType::kF16, 0);
  for (int i = 0; i < 4096; ++i) ASSERT_TRUE(pool.take(0).ok());
  EXPECT_LE(backend.slabs, 12);
  EXPECT_LE(pool.bytes_allocated(), 2 * 4096 * kv_block_bytes(full_kind(), KvType::kF16));
}

TEST(KvPool, ReusesABlockWhenItsLastReferenceIsGone) {
  FakeBackend backend;
  KvPool pool(backend, {full_kind()}, KvType::kF16, 0);
  std::byte* block = *pool.take(0);
  pool.share(0, block);
  pool.release(0, block);
  EXPECT_EQ(pool.blocks_in_use(0), 1);
  EXPECT_NE(*pool.take(0), block);
  pool.release(0, block);
  EXPECT_EQ(pool.blocks_in_use(0), 1);
  EXPECT_EQ(*pool.take(0), block);
}

TEST(KvPool, TheLimitIsReachedExactlyAndSaysWhatToDo) {
  FakeBackend backend;
  const std::int64_t bytes = kv_block_bytes(full_kind(), KvType::kF16);
  KvPool pool(backend, {full_kind()}, KvType::kF16, 11 * bytes + bytes / 2);
  std::vector<std::byte*> blocks;
  for (int i = 0; i < 11; ++i) {
    auto block = pool.take(0);
    ASSERT_TRUE(block.ok()) << i;
    blocks.push_back(*block);
  }
  auto refused = pool.take(0);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message().find("-c"), std::string::npos);
  EXPECT_NE(refused.error().message().find("--kv-type f16"), std::string::npos);
  EXPECT_EQ(refused.error().message().find('\n'), std::string::npos);
  pool.release(0, blocks.back());
  EXPECT_TRUE(pool.take(0).ok());
}

TEST(KvPool, TakesTheLastBlockThatMemoryHas) {
  FakeBackend backend;
  const std::int64_t bytes = kv_block_bytes(full_kind(), KvType::kF16);
  backend.kv_bytes_left = 6 * bytes;  // a first slab of four, then a doubling that fails
  KvPool pool(backend, {full_kind()}, KvType::kF16, 0);
  for (int i = 0; i < 6; ++i) ASSERT_TRUE(pool.take(0).ok()) << i;
  auto refused = pool.take(0);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message().find("cannot allocate"), std::string::npos);
}

TEST(KvPool, AtTheLimitSlabsThatAreNotInUseMakeRoomForOtherKinds) {
  FakeBackend backend;
  const std::int64_t bytes = kv_block_bytes(full_kind(), KvType::kF16);
  KvPool pool(backend, {full_kind(), full_kind()}, KvType::kF16, 12 * bytes);
  std::vector<std::byte*> first;
  for (int i = 0; i < 12; ++i) first.push_back(*pool.take(0));  // three slabs
  EXPECT_FALSE(pool.take(1).ok());
  for (const std::size_t i : {5, 6, 7, 9, 10, 11}) pool.release(0, first[i]);
  EXPECT_FALSE(pool.take(1).ok());  // one block of each slab is in use
  pool.release(0, first[4]);
  std::byte* const other = *pool.take(1);
  EXPECT_EQ(pool.blocks_in_use(0), 5);
  EXPECT_EQ(pool.blocks_in_use(1), 1);
  EXPECT_EQ(pool.bytes_in_use(), 6 * bytes);
  EXPECT_EQ(pool.bytes_allocated(), 12 * bytes);
  pool.share(1, other);
  EXPECT_TRUE(pool.is_shared(1, other));
  EXPECT_FALSE(pool.is_shared(0, first[0]));
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(pool.take(0).ok());
  EXPECT_FALSE(pool.take(0).ok());  // the limit still holds
}

TEST(KvPool, AKindWithoutLayersStillHasBlocks) {
  FakeBackend backend;
  KvPool pool(backend, {{"full", 0, 1, 2, 0}}, KvType::kF16, 0);
  EXPECT_NE(*pool.take(0), nullptr);
}

}  // namespace
}  // namespace eider
