#include "base/thread_pool.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <chrono>
#include <numeric>
#include <thread>
#include <vector>

namespace eider {
namespace {

class ThreadPoolTest : public testing::TestWithParam<int> {};

TEST_P(ThreadPoolTest, RunsTheBodyOncePerThread) {
  ThreadPool pool(GetParam());
  EXPECT_EQ(pool.size(), GetParam());
  std::vector<int> calls(static_cast<std::size_t>(GetParam()));  // not atomic: each thread has its own
  for (int run = 1; run <= 1000; ++run) {
    pool.run([&](int thread) { ++calls[static_cast<std::size_t>(thread)]; });
    for (int count : calls) ASSERT_EQ(count, run);
  }
}

TEST_P(ThreadPoolTest, CallerIsThreadZero) {
  ThreadPool pool(GetParam());
  std::thread::id zero;
  pool.run([&](int thread) {
    if (thread == 0) zero = std::this_thread::get_id();
  });
  EXPECT_EQ(zero, std::this_thread::get_id());
}

// Each thread adds its neighbours' cells of the previous round: a barrier that lets anyone through early is
// seen as a wrong sum here and as a race by the thread sanitizer.
TEST_P(ThreadPoolTest, BarrierSeparatesRounds) {
  const auto threads = static_cast<std::size_t>(GetParam());
  constexpr int kRounds = 200;
  ThreadPool pool(GetParam());
  std::vector<std::uint64_t> cells[2] = {std::vector<std::uint64_t>(threads, 1),
                                         std::vector<std::uint64_t>(threads)};
  pool.run([&](int thread) {
    const auto self = static_cast<std::size_t>(thread);
    for (int round = 0; round < kRounds; ++round) {
      const auto& from = cells[round % 2];
      cells[(round + 1) % 2][self] = from[self] + from[(self + 1) % threads];
      pool.barrier();
    }
  });
  std::uint64_t expected = 1;
  for (int round = 0; round < kRounds; ++round) expected *= 2;  // modulo 2^64, as the cells
  for (std::uint64_t cell : cells[kRounds % 2]) EXPECT_EQ(cell, expected);
}

// What one thread does alone sees all that came before, and is seen by all after.
TEST_P(ThreadPoolTest, OneThreadWorksAloneAtABarrier) {
  constexpr std::int64_t kRounds = 500;
  ThreadPool pool(GetParam());
  std::vector<std::int64_t> cells(static_cast<std::size_t>(GetParam()));
  std::int64_t sum = 0;  // written alone, read by all
  std::atomic<int> wrong{0};
  pool.run([&](int thread) {
    for (std::int64_t round = 1; round <= kRounds; ++round) {
      cells[static_cast<std::size_t>(thread)] = round;
      pool.barrier([&] { sum += std::reduce(cells.begin(), cells.end()); });
      wrong += sum != GetParam() * round * (round + 1) / 2;
      pool.barrier();  // nobody writes a cell while another still reads the sum
    }
  });
  EXPECT_EQ(wrong, 0);
}

INSTANTIATE_TEST_SUITE_P(Threads, ThreadPoolTest, testing::Values(1, 2, 3, 5, 16));

TEST(ThreadPool, DoesNotCrawlWithMoreThreadsThanCores) {
  ThreadPool pool(16);
  const auto start = std::chrono::steady_clock::now();
  pool.run([&](int) {
    for (int i = 0; i < 500; ++i) pool.barrier();
  });
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
}

/// The CPUs that the calling thread may run on.
std::vector<int> allowed_cpus() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  sched_getaffinity(0, sizeof(allowed), &allowed);
  std::vector<int> cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &allowed)) cpus.push_back(cpu);
  return cpus;
}

TEST(ThreadPool, WorkersStayOnTheirCpus) {
  const std::vector<int> cpus = allowed_cpus();
  const auto where = [](int threads, const std::vector<int>& on) {
    std::vector<std::vector<int>> allowed(static_cast<std::size_t>(threads));
    ThreadPool pool(threads, on);
    pool.run([&](int thread) { allowed[static_cast<std::size_t>(thread)] = allowed_cpus(); });
    return allowed;
  };
  const int threads = static_cast<int>(cpus.size());
  const auto pinned = where(threads, cpus);
  EXPECT_EQ(pinned[0], cpus);  // the caller is left alone
  for (std::size_t thread = 1; thread < pinned.size(); ++thread)
    EXPECT_EQ(pinned[thread], std::vector{cpus[thread]});
  // More threads than CPUs, and CPUs that there are not.
  for (const auto& allowed : where(threads + 1, cpus)) EXPECT_EQ(allowed, cpus);
  for (const auto& allowed : where(2, {1 << 20, 1 << 20})) EXPECT_EQ(allowed, cpus);
}

TEST(ThreadPool, IdleWorkersPark) {
  ThreadPool pool(4);
  pool.run([](int) {});
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // long past the spinning
  const std::clock_t before = std::clock();
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  EXPECT_LT(static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC, 0.1);
}

TEST(ThreadPool, TwoPoolsLiveSideBySide) {
  ThreadPool a(3), b(2);
  std::atomic<int> calls{0};
  a.run([&](int thread) {
    if (thread == 0) b.run([&](int) { ++calls; });
  });
  EXPECT_EQ(calls, 2);
}

TEST(Share, CoversEveryItemOnceInMultiplesOfTheGrain) {
  for (std::int64_t items : {0, 1, 7, 16, 100, 1000})
    for (std::int64_t grain : {1, 4, 16, 2000})
      for (int threads : {1, 2, 3, 5, 16}) {
        std::int64_t next = 0;
        for (int thread = 0; thread < threads; ++thread) {
          const auto [begin, end] = ThreadPool::share(items, grain, thread, threads);
          ASSERT_EQ(begin, next);
          ASSERT_LE(begin, end);
          ASSERT_TRUE(begin == items || begin % grain == 0);
          next = end;
        }
        ASSERT_EQ(next, items);
      }
}

TEST(Share, GivesASingleGrainToThreadZero) {
  for (int threads : {1, 2, 16}) EXPECT_EQ(ThreadPool::share(40, 64, 0, threads).end, 40);
}

TEST(Share, DiffersByAtMostOneGrain) {
  for (int threads : {2, 3, 5, 16}) {
    std::int64_t least = 1000, most = 0;
    for (int thread = 0; thread < threads; ++thread) {
      const auto [begin, end] = ThreadPool::share(100, 1, thread, threads);
      least = std::min(least, end - begin);
      most = std::max(most, end - begin);
    }
    EXPECT_LE(most - least, 1);
  }
}

}  // namespace
}  // namespace eider
