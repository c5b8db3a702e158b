#include "serving/io_thread.h"

#include <utility>

namespace eider::serving {

IoThread::IoThread(std::function<void()> wake) : wake_(std::move(wake)), thread_([this] { run(); }) {}

IoThread::~IoThread() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  posted_.notify_one();
  thread_.join();
}

void IoThread::post(std::function<Completion()> work) {
  ++pending_;
  {
    const std::lock_guard lock(mutex_);
    work_.push_back(std::move(work));
  }
  posted_.notify_one();
}

void IoThread::run_completions() {
  if (pending_ == 0) return;
  std::vector<Completion> completions;
  {
    const std::lock_guard lock(mutex_);
    completions.swap(completions_);
  }
  for (const Completion& completion : completions) {
    --pending_;
    if (completion) completion();
  }
}

void IoThread::finish() {
  while (pending_ > 0) {
    {
      std::unique_lock lock(mutex_);
      done_.wait(lock, [this] { return !completions_.empty(); });
    }
    run_completions();
  }
}

void IoThread::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    posted_.wait(lock, [this] { return stop_ || !work_.empty(); });
    if (work_.empty()) return;
    const std::function<Completion()> work = std::move(work_.front());
    work_.pop_front();
    lock.unlock();
    Completion completion = work();
    lock.lock();
    completions_.push_back(std::move(completion));
    done_.notify_one();
    lock.unlock();
    wake_();
    lock.lock();
  }
}

}  // namespace eider::serving
