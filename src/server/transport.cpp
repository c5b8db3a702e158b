#include "server/transport.h"

#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <utility>

namespace eider::server {
namespace {

namespace net = boost::asio;
using Socket = net::ip::tcp::socket;

void close_socket(Socket& socket) {
  boost::system::error_code ignored;
  socket.close(ignored);
}

class PlainTransport final : public Transport {
 public:
  explicit PlainTransport(Socket socket) : socket_(std::move(socket)) {}

  void handshake(Done done) override {
    net::post(socket_.get_executor(), [done = std::move(done)] { done({}, 0); });
  }
  void read_some(std::span<char> buffer, Done done) override {
    socket_.async_read_some(net::buffer(buffer.data(), buffer.size()), std::move(done));
  }
  void write_some(std::string_view bytes, Done done) override {
    socket_.async_write_some(net::buffer(bytes.data(), bytes.size()), std::move(done));
  }
  void shut_down(Done done) override {
    boost::system::error_code problem;
    socket_.shutdown(Socket::shutdown_send, problem);
    net::post(socket_.get_executor(), [done = std::move(done), problem] { done(problem, 0); });
  }
  void close() override { close_socket(socket_); }

 private:
  Socket socket_;
};

class TlsTransport final : public Transport {
 public:
  TlsTransport(Socket socket, net::ssl::context& context) : stream_(std::move(socket), context) {}

  void handshake(Done done) override {
    stream_.async_handshake(
        net::ssl::stream_base::server,
        [done = std::move(done)](boost::system::error_code problem) { done(problem, 0); });
  }
  void read_some(std::span<char> buffer, Done done) override {
    stream_.async_read_some(net::buffer(buffer.data(), buffer.size()), std::move(done));
  }
  void write_some(std::string_view bytes, Done done) override {
    stream_.async_write_some(net::buffer(bytes.data(), bytes.size()), std::move(done));
  }
  void shut_down(Done done) override {
    stream_.async_shutdown([done = std::move(done)](boost::system::error_code problem) { done(problem, 0); });
  }
  void close() override { close_socket(stream_.next_layer()); }

 private:
  net::ssl::stream<Socket> stream_;
};

}  // namespace

std::unique_ptr<Transport> make_plain_transport(Socket socket) {
  return std::make_unique<PlainTransport>(std::move(socket));
}

std::unique_ptr<Transport> make_tls_transport(Socket socket, net::ssl::context& context) {
  return std::make_unique<TlsTransport>(std::move(socket), context);
}

}  // namespace eider::server
