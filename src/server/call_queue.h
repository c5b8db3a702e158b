// CallQueue: calls that any thread makes to the thread of the connections, in order. Those of a step of many
// answers come together and wake that thread once, for each time it wakes it takes a core from computing.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/post.hpp>
#include <functional>
#include <mutex>
#include <utility>
#include <vector>

namespace eider::server {

class CallQueue {
 public:
  /// `executor`: the thread's. The queue must outlive what is posted there.
  explicit CallQueue(boost::asio::any_io_executor executor) : executor_(std::move(executor)) {}

  void post(std::function<void()> call) {
    bool is_first;
    {
      const std::lock_guard lock(mutex_);
      is_first = calls_.empty();
      calls_.push_back(std::move(call));
    }
    if (is_first) boost::asio::post(executor_, [this] { run(); });
  }

 private:
  void run() {
    std::vector<std::function<void()>> calls;
    {
      const std::lock_guard lock(mutex_);
      calls.swap(calls_);
    }
    for (const auto& call : calls) call();
  }

  boost::asio::any_io_executor executor_;
  std::mutex mutex_;
  std::vector<std::function<void()>> calls_;
};

}  // namespace eider::server
