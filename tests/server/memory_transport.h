// A client's bytes from memory, piece by piece, and what the server writes: a Transport without a network.
#pragma once

#include <algorithm>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <cstring>
#include <string>
#include <utility>

#include "server/transport.h"

namespace eider::server {

/// What stays of a connection when its transport is gone.
struct MemoryClient {
  std::string sends;                   ///< what it has still to send
  std::size_t read_bytes = SIZE_MAX;   ///< most of a read
  std::size_t write_bytes = SIZE_MAX;  ///< most of a write
  bool leaves = false;                 ///< closes behind its last byte, else it waits
  std::string received;                ///< what the server has written
  bool shut_down = false;              ///< the server has said that no more will come
  bool closed = false;                 ///< by the server
};

class MemoryTransport final : public Transport {
 public:
  MemoryTransport(boost::asio::any_io_executor executor, MemoryClient& client)
      : executor_(std::move(executor)), client_(client) {}

  void handshake(Done done) override { complete(std::move(done), {}, 0); }

  void read_some(std::span<char> buffer, Done done) override {
    if (client_.sends.empty() && !client_.leaves) {
      waiting_ = std::move(done);
      return;
    }
    if (client_.sends.empty()) return complete(std::move(done), boost::asio::error::eof, 0);
    const std::size_t size = std::min({client_.sends.size(), buffer.size(), client_.read_bytes});
    std::memcpy(buffer.data(), client_.sends.data(), size);
    client_.sends.erase(0, size);
    complete(std::move(done), {}, size);
  }

  void write_some(std::string_view bytes, Done done) override {
    const std::size_t size = std::min(bytes.size(), client_.write_bytes);
    client_.received.append(bytes.substr(0, size));
    complete(std::move(done), {}, size);
  }

  void shut_down(Done done) override {
    client_.shut_down = true;
    complete(std::move(done), {}, 0);
  }

  void close() override {
    client_.closed = true;
    if (waiting_) complete(std::exchange(waiting_, {}), boost::asio::error::operation_aborted, 0);
  }

 private:
  void complete(Done done, boost::system::error_code problem, std::size_t bytes) {
    boost::asio::post(executor_, [done = std::move(done), problem, bytes] { done(problem, bytes); });
  }

  boost::asio::any_io_executor executor_;
  MemoryClient& client_;
  Done waiting_;  // a read that gets nothing
};

}  // namespace eider::server
