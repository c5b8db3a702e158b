#include "base/thread_pool.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "base/check.h"

namespace eider {
namespace {

/// Tells the core that this is a spin loop.
void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// Pauses before a waiting thread parks: some tens of microseconds, about what parking and waking costs.
constexpr int kSpins = 1000;

/// 0 where the pool has more threads than it may use CPUs: whoever spins then keeps the awaited thread from
/// running.
int spins_for(int threads) {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  // Fails only on machines of more than 1,024 CPUs.
  if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) return kSpins;
  return threads <= CPU_COUNT(&allowed) ? kSpins : 0;
}

/// Returns when `counter` is no longer `seen`.
void wait_while(const std::atomic<int>& counter, int seen, int spins) {
  for (int i = 0; i < spins; ++i) {
    if (counter.load(std::memory_order_acquire) != seen) return;
    relax();
  }
  counter.wait(seen, std::memory_order_acquire);
}

/// A counter that others wait for. int, because that is what a futex waits on directly.
struct alignas(64) Counter {
  std::atomic<int> value{0};

  void advance() {
    value.fetch_add(1, std::memory_order_acq_rel);
    value.notify_all();
  }
};

}  // namespace

struct ThreadPool::State {
  explicit State(int count) : threads(count), spins(spins_for(count)) {}

  const int threads;
  const int spins;
  Counter runs;                                  // advanced when a run starts, and to stop
  Counter barriers;                              // advanced when all threads have come to a barrier
  alignas(64) std::atomic<int> arrived{0};       // at the current barrier
  const FunctionRef<void(int)>* body = nullptr;  // of the current run; null: stop
  std::vector<std::thread> workers;

  void barrier() {
    const int seen = barriers.value.load(std::memory_order_acquire);
    if (arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == threads) {
      arrived.store(0, std::memory_order_relaxed);  // before advance(), so before anyone can come again
      barriers.advance();
    } else {
      wait_while(barriers.value, seen, spins);
    }
  }

  void work(int thread) {
    for (int seen = 0;;) {
      wait_while(runs.value, seen, spins);
      seen = runs.value.load(std::memory_order_relaxed);  // here, where the next run cannot have started yet
      if (body == nullptr) return;
      (*body)(thread);
      barrier();
    }
  }
};

ThreadPool::ThreadPool(int threads) : state_(std::make_unique<State>(threads)) {
  EIDER_CHECK(threads >= 1);
  state_->workers.reserve(static_cast<std::size_t>(threads - 1));
  for (int thread = 1; thread < threads; ++thread)
    state_->workers.emplace_back([state = state_.get(), thread] { state->work(thread); });
}

ThreadPool::~ThreadPool() {
  state_->body = nullptr;
  state_->runs.advance();
  for (std::thread& worker : state_->workers) worker.join();
}

int ThreadPool::size() const {
  return state_->threads;
}

void ThreadPool::run(FunctionRef<void(int thread)> body) {
  state_->body = &body;
  state_->runs.advance();
  body(0);
  state_->barrier();
}

void ThreadPool::barrier() {
  state_->barrier();
}

ThreadPool::Range ThreadPool::share(std::int64_t items, std::int64_t grain, int thread, int threads) {
  const std::int64_t grains = (items + grain - 1) / grain;
  const auto first_item = [&](std::int64_t owner) {
    return std::min(items, grains * owner / threads * grain);
  };
  return {first_item(thread), first_item(thread + 1)};
}

}  // namespace eider
