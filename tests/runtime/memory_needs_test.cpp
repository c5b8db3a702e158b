#include "runtime/memory_needs.h"

#include <gtest/gtest.h>

#include "tests/runtime/fake_backend.h"

namespace eider {
namespace {

using test::FakeBackend;
using test::full_kind;
using test::sliding_kind;
using test::some_tokens;

TEST(MemoryNeeds, CountsWholeBlocksOfEveryKind) {
  const KvKind full{"full", 30, 3, 64, 0};
  // 30 layers x 3 heads x (keys and values) x 64 dimensions x 128 positions x 2 bytes
  const std::int64_t block = 30 * 3 * 2 * 64 * 128 * 2;
  EXPECT_EQ(kv_bytes({full}, KvType::kF16, 1, 512), block);
  EXPECT_EQ(kv_bytes({full}, KvType::kF16, 128, 512), block);
  EXPECT_EQ(kv_bytes({full}, KvType::kF16, 129, 512), 2 * block);
  EXPECT_EQ(kv_bytes({full}, KvType::kF32, 8192, 512), 64 * 2 * block);
  EXPECT_EQ(kv_bytes({full, full}, KvType::kF16, 8192, 512), 2 * 64 * block);
}

TEST(MemoryNeeds, WindowsAreAnUpperBoundOnWhatASessionHolds) {
  for (const std::int64_t window : {1, 100, 128, 300}) {
    for (const std::int64_t chunk : {1, 5, 128, 200}) {
      const std::vector<KvKind> kinds = {sliding_kind(window)};
      const std::int64_t block = kv_block_bytes(kinds[0], KvType::kF16);
      const std::int64_t bound = kv_bytes(kinds, KvType::kF16, 1 << 14, chunk) / block;
      FakeBackend backend;
      KvPool pool(backend, kinds, KvType::kF16, 0);
      Session session(pool, 1 << 14);
      std::int64_t most = 0;
      while (session.length() < 3000) {
        ASSERT_TRUE(session.reserve(chunk).ok());
        most = std::max(most, pool.blocks_in_use(0));
        session.append(some_tokens(chunk, 1));
        if (session.length() > 1000 && session.length() <= 1000 + chunk) session.mark_prompt_end();
      }
      EXPECT_LE(most, bound) << "window " << window << " chunk " << chunk;
      EXPECT_LE(bound, most + 2);
    }
  }
  EXPECT_EQ(kv_bytes({sliding_kind(1024)}, KvType::kF16, 200, 512),
            2 * kv_block_bytes(sliding_kind(1024), KvType::kF16));
}

}  // namespace
}  // namespace eider
