#include "runtime/session.h"

#include <gtest/gtest.h>

#include <optional>
#include <utility>
#include <vector>

#include "tests/runtime/fake_backend.h"

namespace eider {
namespace {

using test::FakeBackend;
using test::full_kind;
using test::sliding_kind;
using test::some_tokens;

// Grows `session` by `count` tokens in steps of `chunk`.
void grow(Session& session, std::int64_t count, std::int64_t chunk) {
  for (std::int64_t done = 0; done < count;) {
    const std::int64_t next = std::min(chunk, count - done);
    ASSERT_TRUE(session.reserve(next).ok());
    session.append(some_tokens(next, static_cast<std::uint64_t>(session.length())));
    done += next;
  }
}

// Whether the block of `position` is there.
bool has(const Session& session, int kind, std::int64_t position) {
  return session.blocks().blocks[kind][position / kKvBlockPositions] != nullptr;
}

// Whether a continuation from `length` sees only positions whose blocks are there: by the definition, one by
// one.
bool can_continue(const Session& session, std::int64_t length, std::int64_t window) {
  for (std::int64_t position = 0; position < length; ++position) {
    const bool seen = position > length - window;  // by a query at `length`; later ones see less
    if (seen && !has(session, 0, position)) return false;
  }
  return true;
}

TEST(Session, WindowsGiveBackExactlyTheBlocksThatNothingSees) {
  for (const std::int64_t window : {1, 2, 100, 127, 128, 129, 130, 300, 512}) {
    for (const std::int64_t chunk : {1, 7, 128, 200}) {
      FakeBackend backend;
      KvPool pool(backend, {sliding_kind(window)}, KvType::kF16, 0);
      Session session(pool, 2048);
      while (session.length() < 1100) {
        grow(session, chunk, chunk);
        const std::int64_t length = session.length();
        std::int64_t kept = 0;
        for (std::int64_t block = 0; block * kKvBlockPositions < length; ++block) {
          const std::int64_t last = std::min(length, (block + 1) * kKvBlockPositions) - 1;
          const bool full = last % kKvBlockPositions == kKvBlockPositions - 1;
          const bool seen =
              last > length - 1 - window || !full;  // by the last token, which may be computed again
          ASSERT_EQ(has(session, 0, last), seen)
              << "window " << window << " length " << length << " block " << block;
          kept += seen ? 1 : 0;
        }
        ASSERT_EQ(pool.blocks_in_use(0), kept);
      }
    }
  }
}

TEST(Session, FullLayersKeepEverything) {
  FakeBackend backend;
  KvPool pool(backend, {full_kind(), sliding_kind(100)}, KvType::kF16, 0);
  Session session(pool, 1024);
  grow(session, 1000, 13);
  EXPECT_EQ(pool.blocks_in_use(0), 8);
  EXPECT_EQ(pool.blocks_in_use(1), 1);  // positions 900 to 999 lie in block 7
}

TEST(Session, RewindsFreelyWithoutWindows) {
  FakeBackend backend;
  KvPool pool(backend, {full_kind()}, KvType::kF16, 0);
  Session session(pool, 1024);
  grow(session, 1000, 100);
  const std::vector<TokenId> before(session.tokens().begin(), session.tokens().end());
  for (const std::int64_t length : {1000, 999, 513, 512, 511, 1, 0}) {
    EXPECT_EQ(session.rewind(length), length);
    EXPECT_EQ(session.length(), length);
    EXPECT_TRUE(std::equal(session.tokens().begin(), session.tokens().end(), before.begin()));
    EXPECT_EQ(pool.blocks_in_use(0), (length + 127) / 128);
  }
}

TEST(Session, ReturnsToTheMarkedPromptEnd) {
  for (const std::int64_t window : {1, 64, 128, 129, 200, 400}) {
    for (const std::int64_t prompt : {1, 127, 128, 129, 500, 513, 640}) {
      FakeBackend backend;
      KvPool pool(backend, {sliding_kind(window), full_kind()}, KvType::kF16, 0);
      Session session(pool, 4096);
      grow(session, prompt, 64);
      session.mark_prompt_end();
      grow(session, 1500, 1);
      // One before the end as well: a new answer recomputes the last prompt token for its logits.
      EXPECT_TRUE(can_continue(session, prompt, window));
      EXPECT_EQ(session.rewind(prompt - 1), prompt - 1) << "window " << window;
    }
  }
}

TEST(Session, AMarkCostsOnlyItsWindow) {
  FakeBackend backend;
  KvPool pool(backend, {sliding_kind(200)}, KvType::kF16, 0);
  Session session(pool, 4096);
  grow(session, 1000, 100);
  session.mark_prompt_end();
  grow(session, 2000, 10);
  EXPECT_LE(pool.blocks_in_use(0), 3 + 3);
  session.mark_prompt_end();  // the old place is forgotten
  EXPECT_LE(pool.blocks_in_use(0), 3);
}

TEST(Session, RewindsToTheLongestLengthThatCanContinue) {
  const std::int64_t window = 150;
  for (std::int64_t target = 0; target <= 1200; target += 17) {
    FakeBackend backend;
    KvPool pool(backend, {sliding_kind(window)}, KvType::kF16, 0);
    Session session(pool, 2048);
    grow(session, 400, 64);
    session.mark_prompt_end();
    grow(session, 800, 8);
    std::int64_t longest = target;
    while (!can_continue(session, longest, window)) --longest;
    EXPECT_EQ(session.rewind(target), longest) << "target " << target;
    EXPECT_TRUE(can_continue(session, longest, window));
    grow(session, 300, 50);  // and goes on from there
    EXPECT_EQ(session.length(), longest + 300);
  }
}

TEST(Session, OverflowIsAnErrorWithAdviceAndChangesNothing) {
  FakeBackend backend;
  KvPool pool(backend, {full_kind()}, KvType::kF16, 0);
  Session session(pool, 300);
  grow(session, 299, 100);
  EXPECT_TRUE(session.check_room(1).ok());
  const Status status = session.reserve(2);
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().message().find("-c"), std::string::npos);
  EXPECT_EQ(status.error().message().find('\n'), std::string::npos);
  EXPECT_EQ(session.length(), 299);
  grow(session, 1, 1);
  EXPECT_FALSE(session.reserve(1).ok());
}

TEST(Session, AFullPoolChangesNothing) {
  FakeBackend backend;
  const std::int64_t bytes = kv_block_bytes(full_kind(), KvType::kF16);
  KvPool pool(backend, {full_kind(), full_kind()}, KvType::kF16, 8 * bytes);  // four blocks for each kind
  Session session(pool, 4096);
  grow(session, 300, 100);
  EXPECT_FALSE(session.reserve(300).ok());
  EXPECT_EQ(session.length(), 300);
  EXPECT_EQ(pool.blocks_in_use(0), 3);
  EXPECT_EQ(pool.blocks_in_use(1), 3);
  grow(session, 212, 100);  // the fourth block still fits
}

TEST(Session, GivesItsBlocksBackOnceWhenMovedAndDestroyed) {
  FakeBackend backend;
  KvPool pool(backend, {full_kind()}, KvType::kF16, 0);
  {
    std::optional<Session> first(std::in_place, pool, 1024);
    grow(*first, 500, 100);
    Session second(std::move(*first));
    first.reset();
    EXPECT_EQ(pool.blocks_in_use(0), 4);
    Session third(pool, 1024);
    grow(third, 200, 100);
    third = std::move(second);
    EXPECT_EQ(pool.blocks_in_use(0), 4);
    EXPECT_EQ(third.length(), 500);
  }
  EXPECT_EQ(pool.blocks_in_use(0), 0);
}

TEST(Session, AForkSharesBlocksUntilOneOfThemWrites) {
  FakeBackend backend;
  KvPool pool(backend, {full_kind()}, KvType::kF16, 0);
  Session session(pool, 4096);
  grow(session, 300, 100);
  std::byte* const shared = session.block({0, 2});
  shared[0] = std::byte{42};
  {
    Session fork = session.fork(290);
    EXPECT_EQ(fork.length(), 290);
    EXPECT_TRUE(std::equal(fork.tokens().begin(), fork.tokens().end(), session.tokens().begin()));
    EXPECT_EQ(pool.blocks_in_use(0), 3);
    grow(fork, 10, 5);
    EXPECT_EQ(pool.blocks_in_use(0), 4);  // the partial block is copied, once
    EXPECT_EQ(fork.block({0, 1}), session.block({0, 1}));
    EXPECT_NE(fork.block({0, 2}), shared);
    EXPECT_EQ(fork.block({0, 2})[0], std::byte{42});
    grow(session, 10, 10);
    EXPECT_EQ(session.block({0, 2}), shared);  // which is now its own

    Session at_a_boundary = session.fork(256);
    grow(at_a_boundary, 100, 100);
    EXPECT_EQ(pool.blocks_in_use(0), 5);
  }
  EXPECT_EQ(pool.blocks_in_use(0), 3);
}

TEST(Session, RewindingASharedSessionKeepsTheOthersBlocks) {
  FakeBackend backend;
  KvPool pool(backend, {full_kind()}, KvType::kF16, 0);
  Session session(pool, 4096);
  grow(session, 400, 100);
  const Session fork = session.fork(400);
  EXPECT_EQ(session.rewind(200), 200);  // in the middle of a block that the fork has too
  grow(session, 10, 10);
  EXPECT_NE(session.block({0, 1}), fork.block({0, 1}));
}

TEST(Session, EveryMarkedPromptEndCanBeReturnedTo) {
  const std::int64_t window = 150;
  const auto make = [&](KvPool& pool) {
    Session session(pool, 8192);
    session.keep_prompt_ends(3);
    for (int turn = 0; turn < 5; ++turn) {
      grow(session, 700, 100);
      session.mark_prompt_end();
    }
    grow(session, 500, 50);
    return session;
  };
  FakeBackend backend;
  KvPool pool(backend, {sliding_kind(window), full_kind()}, KvType::kF16, 0);
  Session session = make(pool);
  const std::vector<std::int64_t> ends(session.prompt_ends().begin(), session.prompt_ends().end());
  EXPECT_EQ(ends, (std::vector<std::int64_t>{2100, 2800, 3500}));
  for (const std::int64_t end : ends) {
    EXPECT_EQ(session.resumable(end), end);
    EXPECT_EQ(session.resumable(end - 1), end - 1);
    const Session fork = session.fork(end - 1);
    EXPECT_TRUE(can_continue(fork, end - 1, window));
    EXPECT_EQ(fork.length(), end - 1);
  }
  EXPECT_LT(session.resumable(1400), 1400);  // forgotten
  EXPECT_EQ(session.rewind(2799), 2799);
  EXPECT_EQ(session.prompt_ends().back(), 2799);
  EXPECT_EQ(session.resumable(2100), 2100);
}

TEST(Session, IsRestoredFromItsParts) {
  FakeBackend backend;
  KvPool pool(backend, {sliding_kind(150), full_kind()}, KvType::kF16, 0);
  Session session(pool, 4096);
  session.keep_prompt_ends(4);
  grow(session, 600, 100);
  session.mark_prompt_end();
  grow(session, 700, 100);
  const std::vector<BlockPlace> held = session.held_blocks();
  Session restored(pool, 4096);
  ASSERT_TRUE(restored.restore(session.tokens(), session.prompt_ends(), held).ok());
  EXPECT_EQ(restored.held_blocks(), held);
  for (std::int64_t length = 0; length <= 1300; length += 13)
    EXPECT_EQ(restored.resumable(length), session.resumable(length)) << length;
  grow(restored, 100, 10);

  KvPool small(backend, {sliding_kind(150), full_kind()}, KvType::kF16,
               8 * kv_block_bytes(full_kind(), KvType::kF16));
  Session refused(small, 4096);
  EXPECT_FALSE(refused.restore(session.tokens(), session.prompt_ends(), held).ok());
  EXPECT_EQ(refused.length(), 0);
  EXPECT_EQ(small.blocks_in_use(0) + small.blocks_in_use(1), 0);
  grow(refused, 100, 10);
}

TEST(Session, BlocksStayWhereTheyAre) {
  FakeBackend backend;
  KvPool pool(backend, {full_kind()}, KvType::kF16, 0);
  Session session(pool, 4096);
  grow(session, 1, 1);
  std::byte* const* table = session.blocks().blocks[0];
  std::byte* const first = table[0];
  grow(session, 4095, 64);
  EXPECT_EQ(session.blocks().blocks[0], table);
  EXPECT_EQ(table[0], first);
}

}  // namespace
}  // namespace eider
