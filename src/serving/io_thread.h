// IoThread: does slow work of the disk one piece after another, so that the thread that runs steps never
// waits for it.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace eider::serving {

class IoThread {
 public:
  /// What follows from a piece of work, on its owner's thread.
  using Completion = std::function<void()>;

  /// `wake` is called on the thread after each piece: run_completions() has something to do.
  explicit IoThread(std::function<void()> wake);
  /// Does what was posted first; completions that have not run are dropped.
  ~IoThread();
  IoThread(const IoThread&) = delete;
  IoThread& operator=(const IoThread&) = delete;

  // All of these by the owner's thread alone.

  /// `work` runs on the thread, after all that was posted before.
  void post(std::function<Completion()> work);
  void run_completions();
  /// Waits for all work and runs its completions, and what those post.
  void finish();
  /// Whether a completion is still to come.
  bool busy() const { return pending_ > 0; }

 private:
  void run();

  std::function<void()> wake_;
  std::int64_t pending_ = 0;  // the owner's
  std::mutex mutex_;          // of what follows
  std::condition_variable posted_, done_;
  std::deque<std::function<Completion()>> work_;
  std::vector<Completion> completions_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace eider::serving
