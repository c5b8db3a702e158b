#include "bench/thread_costs.h"

#include <chrono>
#include <thread>

namespace eider::bench {
namespace {

constexpr int kRepeats = 1000;

}  // namespace

ThreadCosts measure_thread_costs(ThreadPool& pool, int samples) {
  ThreadCosts costs{.threads = pool.size()};
  const auto nothing = [](int) {};
  for (int i = -1; i < samples; ++i) {  // the first of each is not counted
    const double barriers = seconds_of([&] {
      pool.run([&](int) {
        for (int repeat = 0; repeat < kRepeats; ++repeat) pool.barrier();
      });
    });
    const double runs = seconds_of([&] {
      for (int repeat = 0; repeat < kRepeats; ++repeat) pool.run(nothing);
    });
    // Long enough that every thread has given up spinning.
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    const double parked = seconds_of([&] { pool.run(nothing); });
    if (i < 0) continue;
    costs.barrier.add(barriers / kRepeats * 1e9);
    costs.run_spinning.add(runs / kRepeats * 1e9);
    costs.run_parked.add(parked * 1e9);
  }
  return costs;
}

}  // namespace eider::bench
