// ThreadPool: the threads that walk a plan together. The caller is thread 0; the others wait for it between
// runs, spinning for a moment and then parked, so that an idle engine costs nothing.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "base/function_ref.h"

namespace eider {

class ThreadPool {
 public:
  /// `threads` >= 1 in all, the caller among them. More threads than cores is allowed (and slow). Thread i
  /// stays on CPU `cpus[i]` where there are as many of those as threads, else all run anywhere; where the
  /// caller, thread 0, runs is its owner's to say.
  explicit ThreadPool(int threads, std::span<const int> cpus = {});
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int size() const;

  /// Calls body(thread) once on each thread, thread in 0..size()-1, and returns when all have returned.
  /// Everything the caller wrote before is visible to them, and everything they wrote is visible afterwards.
  /// Allocates nothing. Not reentrant; one caller at a time.
  void run(FunctionRef<void(int thread)> body);

  /// Only inside run(), by all threads alike: returns when every thread has come here.
  void barrier();
  /// The same; between the last thread's coming and the first one's return, one of them calls alone().
  void barrier(FunctionRef<void()> alone);

  /// Barriers that all threads have passed so far, the one that ends each run among them.
  std::uint32_t barriers_passed() const;

  /// The fixed share [begin, end) of `items` that `thread` owns when each share is a multiple of `grain` (but
  /// the last): depends on nothing but the arguments.
  struct Range {
    std::int64_t begin, end;
  };
  static Range share(std::int64_t items, std::int64_t grain, int thread, int threads);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace eider
