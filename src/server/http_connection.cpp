#include "server/http_connection.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/beast/http/error.hpp>
#include <cctype>
#include <utility>

namespace eider::server {
namespace {

namespace net = boost::asio;
namespace http = boost::beast::http;
using boost::system::error_code;

constexpr std::size_t kReadBytes = std::size_t{64} << 10;
constexpr std::chrono::seconds kLingerTimeout{5};
/// Bodies up to here are taken even where large ones have used up the memory for bodies: what a connection
/// costs at any rate.
constexpr std::size_t kSmallBodyBytes = std::size_t{64} << 10;

const char* reason_phrase(int status) {
  return http::obsolete_reason(static_cast<http::status>(status)).data();
}

/// One reply of a connection. The connection's functions run on its thread, so each call travels there.
class ConnectionReply final : public HttpReply {
 public:
  ConnectionReply(std::shared_ptr<HttpConnection> connection, std::uint64_t serial)
      : connection_(std::move(connection)), serial_(serial) {}
  ~ConnectionReply() override {
    call([](HttpConnection& connection, std::uint64_t serial) { connection.abandon(serial); });
  }

  void send(HttpResponse response) override {
    call([response = std::move(response)](HttpConnection& connection, std::uint64_t serial) mutable {
      connection.send(serial, std::move(response));
    });
  }
  void begin_stream(HttpResponse head) override {
    call([head = std::move(head)](HttpConnection& connection, std::uint64_t serial) mutable {
      connection.begin_stream(serial, std::move(head));
    });
  }
  void write(std::string piece) override {
    call([piece = std::move(piece)](HttpConnection& connection, std::uint64_t serial) mutable {
      connection.write(serial, std::move(piece));
    });
  }
  void end_stream() override {
    call([](HttpConnection& connection, std::uint64_t serial) { connection.end_stream(serial); });
  }
  void post(std::function<void()> work) override { connection_->post(std::move(work)); }
  void on_disconnect(std::function<void()> gone) override {
    call([gone = std::move(gone)](HttpConnection& connection, std::uint64_t serial) mutable {
      connection.on_disconnect(serial, std::move(gone));
    });
  }

 private:
  template <class Call>
  void call(Call&& function) {
    connection_->post([connection = connection_, serial = serial_,
                       function = std::forward<Call>(function)]() mutable { function(*connection, serial); });
  }

  std::shared_ptr<HttpConnection> connection_;
  std::uint64_t serial_;
};

/// Ids of clients are used where they cannot break a log line or a header.
bool is_plain_id(std::string_view id) {
  constexpr std::size_t kMostBytes = 128;
  return !id.empty() && id.size() <= kMostBytes && std::all_of(id.begin(), id.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.';
  });
}

HttpRequest head_of(const http::request<GrowingBody>& message) {
  HttpRequest head;
  head.method = message.method_string();
  const std::string_view target(message.target().data(), message.target().size());
  head.path = target.substr(0, target.find('?'));
  for (const auto& field : message) {
    std::string name(field.name_string());
    std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
    head.headers.emplace_back(std::move(name), std::string(field.value()));
  }
  return head;
}

/// A timer that was set anew may still tell of its old time, where that was over already.
bool is_over(const net::steady_timer& timer) {
  return timer.expiry() <= std::chrono::steady_clock::now();
}

/// What would leave it to a reader's imagination where a request ends or whom it is for; null: nothing.
const char* doubtful_framing(const HttpRequest& head, unsigned version) {
  const auto count = [&](std::string_view name) {
    return std::ranges::count(head.headers, name, [](const auto& header) { return header.first; });
  };
  const auto codings = count("transfer-encoding");
  if (codings + count("content-length") > 1)
    return "content-length and transfer-encoding: one of them, and once";
  if (head.header("content-length").find_first_not_of("0123456789") != std::string_view::npos)
    return "content-length: must be one number";
  if (codings > 0 && !boost::beast::iequals(head.header("transfer-encoding"), "chunked"))
    return "transfer-encoding: only chunked is understood";
  if (version == 11 && (count("host") != 1 || head.header("host").empty()))
    return "one host header is needed";
  return nullptr;
}

}  // namespace

HttpConnection::HttpConnection(std::unique_ptr<Transport> transport, ConnectionHost& host,
                               std::function<void()> closed)
    : transport_(std::move(transport)),
      host_(&host),
      closed_(std::move(closed)),
      read_timer_(host.executor),
      write_timer_(host.executor) {}

void HttpConnection::start() {
  set_read_deadline(host_->options.header_timeout);
  transport_->handshake([self = shared_from_this()](error_code problem, std::size_t) {
    if (problem) return self->close();
    self->set_read_deadline(self->host_->options.idle_timeout);
    self->read_more();
  });
}

void HttpConnection::stop_when_idle() {
  if (state_ == State::kIdle)
    close();
  else
    keep_alive_ = false;
}

void HttpConnection::close() {
  if (state_ == State::kClosed) return;
  if (state_ == State::kAnswering) disconnect();
  state_ = State::kClosed;
  parser_.reset();
  release_body();
  read_timer_.cancel();
  write_timer_.cancel();
  transport_->close();
  std::exchange(closed_, {})();
}

/// The client of the answer under way is gone.
void HttpConnection::disconnect() {
  if (auto gone = std::exchange(gone_, {})) gone();
}

void HttpConnection::set_read_deadline(std::chrono::seconds timeout) {
  read_timer_.expires_after(timeout);
  read_timer_.async_wait([weak = weak_from_this()](error_code problem) {
    const auto self = weak.lock();
    if (problem || !self || !is_over(self->read_timer_) || self->state_ == State::kAnswering) return;
    if (self->state_ == State::kReading) return self->refuse(408, "the request did not come in time");
    self->close();
  });
}

void HttpConnection::set_write_deadline() {
  write_timer_.expires_after(host_->options.write_timeout);
  write_timer_.async_wait([weak = weak_from_this()](error_code problem) {
    if (const auto self = weak.lock(); self && !problem && is_over(self->write_timer_)) self->close();
  });
}

void HttpConnection::read_more() {
  if (reading_ || state_ == State::kClosed) return;
  // A client that sends its next requests before this one is answered waits from here on.
  if (state_ == State::kAnswering && input_.size() >= kReadBytes) return;
  reading_ = true;
  received_.resize(kReadBytes);
  transport_->read_some(received_, [self = shared_from_this()](error_code problem, std::size_t bytes) {
    self->on_read(problem, bytes);
  });
}

void HttpConnection::on_read(error_code problem, std::size_t bytes) {
  reading_ = false;
  if (state_ == State::kClosed) return;
  if (problem) return close();
  if (state_ != State::kLingering)
    input_.commit(net::buffer_copy(input_.prepare(bytes), net::buffer(received_, bytes)));
  if (state_ == State::kIdle || state_ == State::kReading)
    parse();
  else
    read_more();
}

void HttpConnection::parse() {
  if (state_ == State::kIdle) {
    state_ = State::kReading;
    head_checked_ = false;
    head_bytes_ = 0;
    parser_.emplace();
    parser_->eager(false);  // to stop behind the head: fields that a chunked body ends with are none of it
    parser_->header_limit(static_cast<std::uint32_t>(host_->options.max_header_bytes));
    parser_->body_limit(host_->options.max_body_bytes);
    set_read_deadline(host_->options.header_timeout);
  }
  error_code problem;
  while (input_.size() > 0 && !parser_->is_done() && !problem) {
    const std::size_t used = parser_->put(input_.data(), problem);
    input_.consume(used);
    // A length beyond the limit is found before the head counts as done, with the body's begin behind it.
    const bool malformed = problem && problem != http::error::need_more;
    if (!malformed && !head_checked_ && is_head_too_long(used))
      return refuse_unparsed(http::error::header_limit);
    if (parser_->is_header_done() && !head_checked_ && !check_head()) return;
    if (malformed) return refuse_unparsed(problem);
    if (!claim_body()) return refuse(503, "other requests' bodies leave no memory for this one's: try again");
    if (used == 0) break;
  }
  if (parser_->is_done()) return take_request();
  read_more();
}

/// Counts what the parser took of a head. Its own limit is of what it has at a time, not of lines that come
/// one by one.
bool HttpConnection::is_head_too_long(std::size_t used) {
  head_bytes_ += used;
  const std::size_t begun = parser_->is_header_done() ? 0 : input_.size();
  return head_bytes_ + begun > host_->options.max_header_bytes;
}

/// Looks at a head that has just become whole; false where the request was refused.
bool HttpConnection::check_head() {
  head_checked_ = true;
  head_ = head_of(parser_->get());
  const std::string_view given_id = head_.header("x-request-id");
  head_.id = is_plain_id(given_id) ? std::string(given_id) : host_->new_request_id();
  if (const char* doubt = doubtful_framing(head_, parser_->get().version())) {
    refuse(400, doubt);
    return false;
  }
  if (auto refusal = host_->service.admit(head_)) {
    respond_and_linger(std::move(*refusal));
    return false;
  }
  parser_->eager(true);
  if (!parser_->is_done()) {
    set_read_deadline(host_->options.body_timeout);
    if (boost::beast::iequals(head_.header("expect"), "100-continue"))
      enqueue("HTTP/1.1 100 Continue\r\n\r\n");
  }
  return true;
}

/// Counts what the body has come to; false where all bodies together would be too large.
bool HttpConnection::claim_body() {
  const std::size_t bytes = parser_->get().body().capacity();
  if (bytes <= claimed_bytes_) return true;
  host_->body_bytes += bytes - std::exchange(claimed_bytes_, bytes);
  return bytes <= kSmallBodyBytes || host_->body_bytes <= host_->options.max_bodies_bytes;
}

void HttpConnection::release_body() {
  host_->body_bytes -= std::exchange(claimed_bytes_, 0);
}

void HttpConnection::take_request() {
  state_ = State::kAnswering;
  read_timer_.cancel();
  ++serial_;
  auto& message = parser_->get();
  keep_alive_ = message.keep_alive() && !host_->stopping;
  chunked_ = message.version() >= 11;
  head_only_ = message.method() == http::verb::head;
  stream_begun_ = answer_ended_ = false;
  HttpRequest request = head_;
  request.body = std::move(message.body());
  parser_.reset();
  auto reply = std::make_shared<ConnectionReply>(shared_from_this(), serial_);
  host_->run_handler([host = host_, request = std::move(request), reply = std::move(reply)]() mutable {
    host->service.answer(std::move(request), std::move(reply));
  });
  read_more();
}

void HttpConnection::refuse_unparsed(error_code problem) {
  if (problem == http::error::header_limit)
    return refuse(431, fmt::format("the header has more than {} bytes", host_->options.max_header_bytes));
  if (problem == http::error::body_limit)
    return refuse(413, fmt::format("the body has more than {} bytes", host_->options.max_body_bytes));
  refuse(400, fmt::format("not an HTTP/1.1 request: {}", problem.message()));
}

void HttpConnection::refuse(int status, const std::string& message) {
  ++host_->counters.refused_requests;
  if (!head_checked_) head_ = {};
  if (head_.id.empty()) head_.id = host_->new_request_id();
  respond_and_linger(host_->service.refuse(status, head_.path, message));
}

/// Answers a request that was not read to its end, so that the connection is of no further use.
void HttpConnection::respond_and_linger(HttpResponse response) {
  keep_alive_ = false;
  std::string bytes = render_head(response, fmt::format("content-length: {}\r\n", response.body.size()));
  if (head_.method != "HEAD") bytes += response.body;
  enqueue(std::move(bytes));
  answer_ended_ = true;
  input_.consume(input_.size());
  parser_.reset();
  release_body();
  linger();
}

/// A client that still sends would lose the answer if the connection closed under it: what it sends is thrown
/// away for a while.
void HttpConnection::linger() {
  state_ = State::kLingering;
  set_read_deadline(kLingerTimeout);
  read_more();
}

std::string HttpConnection::render_head(const HttpResponse& response, const std::string& framing) const {
  std::string head =
      fmt::format("HTTP/1.1 {} {}\r\n{}", response.status, reason_phrase(response.status), framing);
  if (!response.content_type.empty()) head += fmt::format("content-type: {}\r\n", response.content_type);
  for (const auto& [name, value] : response.headers) head += fmt::format("{}: {}\r\n", name, value);
  if (!host_->options.cors_origin.empty())
    head += fmt::format("access-control-allow-origin: {}\r\n", host_->options.cors_origin);
  head += fmt::format("x-request-id: {}\r\n", head_.id);
  if (!keep_alive_) head += "connection: close\r\n";
  return head + "\r\n";
}

void HttpConnection::send(std::uint64_t serial, HttpResponse response) {
  if (!is_current(serial) || stream_begun_ || answer_ended_) return;
  const bool bodiless = response.status == 204;
  const std::string framing = bodiless ? "" : fmt::format("content-length: {}\r\n", response.body.size());
  std::string bytes = render_head(response, framing);
  if (!head_only_ && !bodiless) bytes += response.body;
  answer_ended_ = true;
  enqueue(std::move(bytes));
}

void HttpConnection::begin_stream(std::uint64_t serial, HttpResponse head) {
  if (!is_current(serial) || stream_begun_ || answer_ended_) return;
  stream_begun_ = true;
  if (!chunked_) keep_alive_ = false;  // HTTP/1.0: the end of the connection is the end of the body
  enqueue(render_head(head, chunked_ ? "transfer-encoding: chunked\r\n" : ""));
}

void HttpConnection::write(std::uint64_t serial, std::string piece) {
  if (!is_current(serial) || !stream_begun_ || answer_ended_ || piece.empty() || head_only_) return;
  enqueue(chunked_ ? fmt::format("{:x}\r\n{}\r\n", piece.size(), piece) : std::move(piece));
}

void HttpConnection::end_stream(std::uint64_t serial) {
  if (!is_current(serial) || !stream_begun_ || answer_ended_) return;
  answer_ended_ = true;
  if (chunked_ && !head_only_) return enqueue("0\r\n\r\n");
  if (output_.empty()) finish_answer();
}

void HttpConnection::on_disconnect(std::uint64_t serial, std::function<void()> gone) {
  if (is_current(serial))
    gone_ = std::move(gone);
  else
    gone();
}

void HttpConnection::abandon(std::uint64_t serial) {
  if (!is_current(serial) || answer_ended_) return;
  if (stream_begun_) return close();
  send(serial, host_->service.refuse(500, head_.path, "the request was not answered"));
}

void HttpConnection::enqueue(std::string bytes) {
  output_bytes_ += bytes.size();
  const bool too_far_behind = !output_.empty() && output_bytes_ > host_->options.max_unsent_bytes;
  output_.push_back(std::move(bytes));
  if (too_far_behind) return close();
  if (output_.size() == 1) write_next();
}

void HttpConnection::write_next() {
  set_write_deadline();
  transport_->write_some(std::string_view(output_.front()).substr(written_),
                         [self = shared_from_this()](error_code problem, std::size_t bytes) {
                           self->on_written(problem, bytes);
                         });
}

void HttpConnection::on_written(error_code problem, std::size_t bytes) {
  if (state_ == State::kClosed) return;
  if (problem) return close();
  written_ += bytes;
  if (written_ == output_.front().size()) {
    output_bytes_ -= written_;
    written_ = 0;
    output_.pop_front();
  }
  if (!output_.empty()) return write_next();
  write_timer_.expires_at(std::chrono::steady_clock::time_point::max());
  if (answer_ended_) finish_answer();
}

/// All of an answer is written: on to the next request, or the end.
void HttpConnection::finish_answer() {
  answer_ended_ = false;
  gone_ = {};
  release_body();
  if (!keep_alive_) {
    if (state_ == State::kAnswering) linger();
    transport_->shut_down([self = shared_from_this()](error_code problem, std::size_t) {
      if (problem) self->close();
    });
    return;
  }
  state_ = State::kIdle;
  head_ = {};
  if (input_.size() > 0) return parse();
  set_read_deadline(host_->options.idle_timeout);
  read_more();
}

}  // namespace eider::server
