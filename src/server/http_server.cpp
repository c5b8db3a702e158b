#include "server/http_server.h"

#include <fmt/format.h>
#include <sys/random.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/thread_pool.hpp>
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "base/check.h"
#include "server/http_connection.h"
#include "server/transport.h"

namespace eider::server {
namespace {

namespace net = boost::asio;
using boost::system::error_code;
using net::ip::tcp;

constexpr std::string_view kFullResponse =
    "HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
constexpr std::chrono::milliseconds kAcceptPause{100};

std::string new_request_id() {
  std::uint64_t words[2] = {};
  EIDER_CHECK(getrandom(words, sizeof(words), 0) == sizeof(words));
  return fmt::format("req_{:016x}{:016x}", words[0], words[1]);
}

/// TLS 1.2 and later with the files' certificate; null where there is none.
Result<std::unique_ptr<net::ssl::context>> make_tls_context(const HttpServerOptions& options) {
  if (options.tls_certificate_file.empty() && options.tls_key_file.empty())
    return std::unique_ptr<net::ssl::context>();
  if (options.tls_certificate_file.empty() || options.tls_key_file.empty())
    return error("--ssl-cert-file and --ssl-key-file: give both, or neither");
  auto context = std::make_unique<net::ssl::context>(net::ssl::context::tls_server);
  context->set_options(net::ssl::context::default_workarounds | net::ssl::context::no_sslv2 |
                       net::ssl::context::no_sslv3 | net::ssl::context::no_tlsv1 |
                       net::ssl::context::no_tlsv1_1);
  error_code problem;
  context->use_certificate_chain_file(options.tls_certificate_file, problem);
  if (problem) return error("--ssl-cert-file: {}: {}", options.tls_certificate_file, problem.message());
  context->use_private_key_file(options.tls_key_file, net::ssl::context::pem, problem);
  if (problem) return error("--ssl-key-file: {}: {}", options.tls_key_file, problem.message());
  return context;
}

Result<tcp::acceptor> bind_acceptor(net::io_context& context, const HttpServerOptions& options) {
  error_code problem;
  tcp::resolver resolver(context);
  const auto found =
      resolver.resolve(options.host, std::to_string(options.port), tcp::resolver::passive, problem);
  if (problem) return error("--host: {}: {}", options.host, problem.message());
  const tcp::endpoint endpoint = *found.begin();
  tcp::acceptor acceptor(context);
  acceptor.open(endpoint.protocol(), problem);
  if (!problem) acceptor.set_option(tcp::acceptor::reuse_address(true), problem);
  if (!problem) acceptor.bind(endpoint, problem);
  if (!problem) acceptor.listen(net::socket_base::max_listen_connections, problem);
  if (problem)
    return error("--host, --port: cannot listen on {}:{}: {}", options.host, options.port, problem.message());
  return acceptor;
}

}  // namespace

class HttpServer::Impl {
 public:
  Impl(HttpServerOptions options, HttpService service, HttpCounters& counters)
      : handlers_(static_cast<std::size_t>(options.handler_threads)),
        host_(context_.get_executor(), counters),
        accept_timer_(context_) {
    host_.options = std::move(options);
    host_.service = std::move(service);
    host_.run_handler = [this](std::function<void()> work) { net::post(handlers_, std::move(work)); };
    host_.new_request_id = new_request_id;
  }
  ~Impl();

  Status start();
  std::uint16_t port() const { return port_; }
  void stop_accepting();
  bool wait_until_closed(std::chrono::steady_clock::time_point deadline) const;

 private:
  void accept();
  void on_accepted(error_code problem, tcp::socket socket);
  void add_connection(tcp::socket socket);

  net::io_context context_{1};
  net::thread_pool handlers_;
  ConnectionHost host_;
  std::unique_ptr<net::ssl::context> tls_;
  std::optional<tcp::acceptor> acceptor_;
  net::steady_timer accept_timer_;
  std::uint16_t port_ = 0;
  std::thread thread_;

  // Those that are open, by number; the thread of the connections alone changes them.
  std::map<std::uint64_t, std::shared_ptr<HttpConnection>> connections_;
  std::uint64_t next_connection_ = 0;
  mutable std::mutex mutex_;  // held where the last one closes
  mutable std::condition_variable all_closed_;
};

Status HttpServer::Impl::start() {
  EIDER_TRY(tls_, make_tls_context(host_.options));
  EIDER_TRY(tcp::acceptor acceptor, bind_acceptor(context_, host_.options));
  error_code ignored;
  port_ = acceptor.local_endpoint(ignored).port();
  acceptor_ = std::move(acceptor);
  accept();
  thread_ = std::thread([this] { context_.run(); });
  return {};
}

HttpServer::Impl::~Impl() {
  stop_accepting();
  net::post(context_, [this] {
    for (auto connections = connections_; const auto& [number, connection] : connections) connection->close();
  });
  handlers_.join();  // handlers still answer into connections, which are closed by now
  context_.stop();
  if (thread_.joinable()) thread_.join();
}

void HttpServer::Impl::accept() {
  acceptor_->async_accept(
      [this](error_code problem, tcp::socket socket) { on_accepted(problem, std::move(socket)); });
}

void HttpServer::Impl::on_accepted(error_code problem, tcp::socket socket) {
  if (host_.stopping || problem == net::error::operation_aborted) return;
  if (problem) {
    // Most likely no file descriptor is left: the next connection waits until one may be.
    accept_timer_.expires_after(kAcceptPause);
    accept_timer_.async_wait([this](error_code cancelled) {
      if (!cancelled) accept();
    });
    return;
  }
  ++host_.counters.accepted;
  error_code ignored;
  if (connections_.size() < host_.options.max_connections) {
    socket.set_option(tcp::no_delay(true), ignored);
    add_connection(std::move(socket));
  } else {
    ++host_.counters.refused_connections;
    socket.non_blocking(true, ignored);
    socket.write_some(net::buffer(kFullResponse.data(), kFullResponse.size()), ignored);
  }
  accept();
}

void HttpServer::Impl::add_connection(tcp::socket socket) {
  const std::uint64_t number = next_connection_++;
  auto transport =
      tls_ ? make_tls_transport(std::move(socket), *tls_) : make_plain_transport(std::move(socket));
  const auto on_closed = [this, number] {
    connections_.erase(number);
    const std::lock_guard lock(mutex_);
    if (--host_.counters.connections == 0) all_closed_.notify_all();
  };
  const auto connection = std::make_shared<HttpConnection>(std::move(transport), host_, on_closed);
  connections_.emplace(number, connection);
  ++host_.counters.connections;
  connection->start();
}

void HttpServer::Impl::stop_accepting() {
  net::post(context_, [this] {
    host_.stopping = true;
    error_code ignored;
    acceptor_->close(ignored);
    accept_timer_.cancel();
    for (auto connections = connections_; const auto& [number, connection] : connections)
      connection->stop_when_idle();
  });
}

bool HttpServer::Impl::wait_until_closed(std::chrono::steady_clock::time_point deadline) const {
  std::unique_lock lock(mutex_);
  return all_closed_.wait_until(lock, deadline, [this] { return host_.counters.connections == 0; });
}

Result<std::unique_ptr<HttpServer>> HttpServer::start(HttpServerOptions options, HttpService service,
                                                      HttpCounters& counters) {
  auto impl = std::make_unique<Impl>(std::move(options), std::move(service), counters);
  EIDER_TRY_STATUS(impl->start());
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(impl)));
}

HttpServer::HttpServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
HttpServer::~HttpServer() = default;
std::uint16_t HttpServer::port() const {
  return impl_->port();
}
void HttpServer::stop_accepting() {
  impl_->stop_accepting();
}
bool HttpServer::wait_until_closed(std::chrono::steady_clock::time_point deadline) const {
  return impl_->wait_until_closed(deadline);
}

}  // namespace eider::server
