// WorkShares: every item once, whoever takes it.
#include "backend/host/work_shares.h"

#include <gtest/gtest.h>

#include <thread>

namespace eider::host {
namespace {

TEST(WorkShares, EveryItemIsDoneOnceWhateverTheThreadsDo) {
  for (const int threads : {1, 2, 3, 8}) {
    ThreadPool pool(threads);
    WorkShares shares(threads);
    // More phases than numbers, some of fewer items than threads.
    constexpr int kPhases = 70'000;
    constexpr std::int64_t kItems[] = {1, 7, 64, 1000, 3};
    std::vector<std::atomic<int>> done(1000);
    std::atomic<int> wrong{0};
    pool.run([&](int thread) {
      for (int phase = 1; phase < kPhases; ++phase) {
        const std::int64_t items = kItems[phase % 5];
        shares.work(static_cast<std::uint16_t>(phase), items, 1 + phase % 3, thread, [&](Items piece) {
          for (std::int64_t i = piece.begin; i < piece.end; ++i)
            done[static_cast<std::size_t>(i)].fetch_add(1, std::memory_order_relaxed);
        });
        pool.barrier([&] {
          for (std::int64_t i = 0; i < items; ++i)
            if (done[static_cast<std::size_t>(i)].exchange(0, std::memory_order_relaxed) != 1) ++wrong;
        });
        if (phase > 300 && threads == 8) return;  // more threads than cores are slow
      }
    });
    EXPECT_EQ(wrong, 0) << threads << " threads";
  }
}

TEST(WorkShares, ASlowThreadsShareIsTakenByTheOthers) {
  ThreadPool pool(2);
  WorkShares shares(2);
  std::atomic<std::int64_t> by_thread[2] = {};
  pool.run([&](int thread) {
    shares.work(1, 1000, 1, thread, [&](Items piece) {
      if (thread == 0) std::this_thread::sleep_for(std::chrono::milliseconds(50));
      by_thread[thread] += piece.end - piece.begin;
    });
  });
  EXPECT_EQ(by_thread[0] + by_thread[1], 1000);
  EXPECT_LT(by_thread[0], 500);
}

}  // namespace
}  // namespace eider::host
