// HttpConnection: one client's connection: its requests in order, one at a time, and their answers. It reads
// on while a request is answered, for that is how a client that leaves is noticed. All functions run on the
// thread of the connections.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "server/call_queue.h"
#include "server/growing_body.h"
#include "server/http.h"
#include "server/http_server.h"
#include "server/transport.h"

namespace eider::server {

/// What a connection needs of its server.
struct ConnectionHost {
  ConnectionHost(boost::asio::any_io_executor thread, HttpCounters& seen)
      : executor(thread), calls(std::move(thread)), counters(seen) {}

  boost::asio::any_io_executor executor;  ///< the thread of the connections
  CallQueue calls;                        ///< to it
  HttpServerOptions options;
  HttpService service;
  /// Runs a request's handler on another thread.
  std::function<void(std::function<void()>)> run_handler;
  std::function<std::string()> new_request_id;
  bool stopping = false;
  std::size_t body_bytes = 0;  ///< of all requests that are read or answered
  HttpCounters& counters;
};

class HttpConnection final : public std::enable_shared_from_this<HttpConnection> {
 public:
  /// `closed` is called once, when the connection has ended. `host` must outlive the connection.
  HttpConnection(std::unique_ptr<Transport> transport, ConnectionHost& host, std::function<void()> closed);

  void start();
  /// Ends it once the request under way is answered; at once where there is none.
  void stop_when_idle();
  void close();

  // What an HttpReply asks for; `serial` is its request's number, and calls for another one do nothing.
  void send(std::uint64_t serial, HttpResponse response);
  void begin_stream(std::uint64_t serial, HttpResponse head);
  void write(std::uint64_t serial, std::string piece);
  void end_stream(std::uint64_t serial);
  void on_disconnect(std::uint64_t serial, std::function<void()> gone);
  /// The last holder of the reply is gone: where nothing was sent, that is an error of ours.
  void abandon(std::uint64_t serial);

  /// On any thread: `call` follows on that of the connections.
  void post(std::function<void()> call) { host_->calls.post(std::move(call)); }

 private:
  using Parser = boost::beast::http::request_parser<GrowingBody>;
  /// kIdle: between requests; kReading: inside of one; kAnswering: one is whole; kLingering: the last answer
  /// is out or on its way, and what still comes is thrown away; kClosed.
  enum class State : std::uint8_t { kIdle, kReading, kAnswering, kLingering, kClosed };

  void read_more();
  void on_read(boost::system::error_code problem, std::size_t bytes);
  void parse();
  bool is_head_too_long(std::size_t used);
  bool check_head();
  bool claim_body();
  void release_body();
  void take_request();
  void refuse_unparsed(boost::system::error_code problem);
  void refuse(int status, const std::string& message);
  void respond_and_linger(HttpResponse response);
  void enqueue(std::string bytes);
  void write_next();
  void on_written(boost::system::error_code problem, std::size_t bytes);
  void finish_answer();
  void linger();
  void disconnect();
  void set_read_deadline(std::chrono::seconds timeout);
  void set_write_deadline();
  bool is_current(std::uint64_t serial) const { return serial == serial_ && state_ == State::kAnswering; }
  std::string render_head(const HttpResponse& response, const std::string& framing) const;

  std::unique_ptr<Transport> transport_;
  ConnectionHost* host_;
  std::function<void()> closed_;
  boost::asio::steady_timer read_timer_, write_timer_;
  State state_ = State::kIdle;

  boost::beast::flat_buffer input_;
  bool reading_ = false;  // a read is under way
  std::string received_;  // what it writes to: `input_` may be parsed, and moves then, before it is done
  std::optional<Parser> parser_;
  bool head_checked_ = false;
  std::size_t head_bytes_ = 0;     // of the head so far
  std::size_t claimed_bytes_ = 0;  // of the host's body_bytes

  std::uint64_t serial_ = 0;  // of the request under way
  HttpRequest head_;          // of that request
  bool head_only_ = false, keep_alive_ = true, chunked_ = false, stream_begun_ = false;
  std::function<void()> gone_;

  std::deque<std::string> output_;
  std::size_t output_bytes_ = 0;  // in `output_`
  std::size_t written_ = 0;       // of the front one
  bool answer_ended_ = false;     // all of it is in `output_`
};

}  // namespace eider::server
