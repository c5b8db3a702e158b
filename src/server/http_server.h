// HttpServer: the edge to the network. Connections are served by one thread that never waits for any of them,
// so that a slow client costs memory (bounded) and a timer, but no thread; requests that have come whole are
// handed to a handler on threads of its own.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "server/http.h"

namespace eider::server {

struct HttpServerOptions {
  std::string host = "127.0.0.1";
  std::uint16_t port = 8080;                       ///< 0: one that is free
  std::string tls_certificate_file, tls_key_file;  ///< PEM; both or neither
  std::string cors_origin;                         ///< value of access-control-allow-origin; empty: no CORS

  std::size_t max_connections = 512;
  std::size_t max_header_bytes = std::size_t{16} << 10;
  std::size_t max_body_bytes = std::size_t{32} << 20;
  /// Of all requests that are read or answered; beyond it only small bodies are taken.
  std::size_t max_bodies_bytes = std::size_t{256} << 20;
  /// Most bytes of answers that one client may leave unread before it is taken for gone.
  std::size_t max_unsent_bytes = std::size_t{8} << 20;
  std::chrono::seconds header_timeout{15};  ///< from a request's first byte to the end of its header
  std::chrono::seconds body_timeout{120};
  std::chrono::seconds idle_timeout{75};   ///< between requests of one connection
  std::chrono::seconds write_timeout{60};  ///< for a client to take what is written, piece by piece
  int handler_threads = 2;
};

/// What a server has seen since its start; any thread may look.
struct HttpCounters {
  std::atomic<std::int64_t> connections{0};  ///< open now
  std::atomic<std::int64_t> accepted{0};
  std::atomic<std::int64_t> refused_connections{0};  ///< beyond max_connections
  std::atomic<std::int64_t> refused_requests{0};     ///< malformed, too large or too slow
};

class HttpServer {
 public:
  /// Binds and begins to serve; `counters` must outlive the server. Fails, naming the flag, where the address
  /// cannot be bound or TLS files not be used.
  static Result<std::unique_ptr<HttpServer>> start(HttpServerOptions options, HttpService service,
                                                   HttpCounters& counters);
  /// Closes all connections.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  std::uint16_t port() const;
  /// Accepts no more connections and closes those without a request; the others close after their answer.
  void stop_accepting();
  /// Waits until all connections have closed, or until `deadline`; true where they have.
  bool wait_until_closed(std::chrono::steady_clock::time_point deadline) const;

 private:
  class Impl;
  explicit HttpServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace eider::server
