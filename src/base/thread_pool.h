// ThreadPool: the threads that walk a plan together. The caller is thread 0; the others wait for it between
// runs, spinning for a moment and then parked, so that an idle engine costs nothing.
#pragma once

#include <cstdint>
#include <memory>

#include "base/function_ref.h"

namespace eider {

class ThreadPool {
 public:
  /// `threads` >= 1 in all, the caller among them. More threads than cores is allowed (and slow).
  explicit ThreadPool(int threads);
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
