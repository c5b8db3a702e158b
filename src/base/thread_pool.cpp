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

/// Pauses before a waiting thread parks. At most some hundred microseconds, the length of an uneven phase; at
/// least about what parking and waking costs, or a thread that has parked a few times would never again be in
/// time to see that spinning pays.
constexpr int kMostSpins = 5000;
constexpr int kFewestSpins = 300;

/// True where the pool has more threads than CPUs: whoever spins then keeps the awaited thread from running.
bool more_than_cpus(int threads) {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  // Fails only on machines of more than 1,024 CPUs.
  return sched_getaffinity(0, sizeof(allowed), &allowed) == 0 && threads > CPU_COUNT(&allowed);
}

/// Keeps the calling thread on one CPU, if the kernel lets it.
void stay_on(int cpu) {
  cpu_set_t only;
  CPU_ZERO(&only);
  if (cpu < 0 || cpu >= CPU_SETSIZE) return;
  CPU_SET(cpu, &only);
  sched_setaffinity(0, sizeof(only), &only);
}

/// Waits first by spinning, and the less so the more often that was in vain: on a busy machine the awaited
/// thread needs the CPU that a spinning one would hold.
class Waiter {
 public:
  explicit Waiter(int most_spins) : most_spins_(most_spins), spins_(most_spins) {}

  /// Returns when `counter` is no longer `seen`.
  void wait_while(const std::atomic<int>& counter, int seen) {
    const int spins = spins_.load(std::memory_order_relaxed);
    for (int i = 0; i < spins; ++i) {
      if (counter.load(std::memory_order_acquire) != seen) {
        if (spins < most_spins_) spins_.store(std::min(most_spins_, 2 * spins), std::memory_order_relaxed);
        return;
      }
      relax();
    }
    if (spins > kFewestSpins) spins_.store(spins / 2, std::memory_order_relaxed);
    counter.wait(seen, std::memory_order_acquire);
  }

 private:
  const int most_spins_;
  std::atomic<int> spins_;  // shared by all threads of a pool: an estimate, whose races do not matter
};

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
  explicit State(int count) : threads(count), waiter(more_than_cpus(count) ? 0 : kMostSpins) {}

  const int threads;
  Waiter waiter;
  Counter runs;                                  // advanced when a run starts, and to stop
  Counter barriers;                              // advanced when all threads have come to a barrier
  alignas(64) std::atomic<int> arrived{0};       // at the current barrier
  const FunctionRef<void(int)>* body = nullptr;  // of the current run; null: stop
  std::vector<std::thread> workers;

  template <class Alone>
  void barrier(Alone alone) {
    const int seen = barriers.value.load(std::memory_order_acquire);
    if (arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == threads) {
      arrived.store(0, std::memory_order_relaxed);  // before advance(), so before anyone can come again
      alone();
      barriers.advance();
    } else {
      waiter.wait_while(barriers.value, seen);
    }
  }

  void work(int thread) {
    for (int seen = 0;;) {
      waiter.wait_while(runs.value, seen);
      seen = runs.value.load(std::memory_order_relaxed);  // here, where the next run cannot have started yet
      if (body == nullptr) return;
      (*body)(thread);
      barrier([] {});
    }
  }
};

ThreadPool::ThreadPool(int threads, std::span<const int> cpus) : state_(std::make_unique<State>(threads)) {
  EIDER_CHECK(threads >= 1);
  const auto count = static_cast<std::size_t>(threads);
  state_->workers.reserve(count - 1);
  for (std::size_t thread = 1; thread < count; ++thread)
    state_->workers.emplace_back(
        [state = state_.get(), thread, cpu = count <= cpus.size() ? cpus[thread] : -1] {
          stay_on(cpu);
          state->work(static_cast<int>(thread));
        });
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
  state_->barrier([] {});
}

void ThreadPool::barrier() {
  state_->barrier([] {});
}

void ThreadPool::barrier(FunctionRef<void()> alone) {
  state_->barrier(alone);
}

std::uint32_t ThreadPool::barriers_passed() const {
  return static_cast<std::uint32_t>(state_->barriers.value.load(std::memory_order_acquire));
}

ThreadPool::Range ThreadPool::share(std::int64_t items, std::int64_t grain, int thread, int threads) {
  const std::int64_t grains = (items + grain - 1) / grain;
  // Rounded up, so that a single grain falls to thread 0.
  const auto first_item = [&](std::int64_t owner) {
    return std::min(items, (grains * owner + threads - 1) / threads * grain);
  };
  return {first_item(thread), first_item(thread + 1)};
}

}  // namespace eider
