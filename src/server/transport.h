// Transport: one connection's bytes, plain or by TLS, behind one small interface, so that what is above it is
// compiled once and includes no TLS.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <functional>
#include <memory>
#include <span>
#include <string_view>

namespace boost::asio::ssl {
class context;
}

namespace eider::server {

/// At most one read, one write and one handshake or shutdown at a time. All on the thread of the connections.
class Transport {
 public:
  using Done = std::function<void(boost::system::error_code problem, std::size_t bytes)>;

  virtual ~Transport() = default;
  virtual void handshake(Done done) = 0;
  virtual void read_some(std::span<char> buffer, Done done) = 0;
  virtual void write_some(std::string_view bytes, Done done) = 0;
  /// Tells the client that no more will come.
  virtual void shut_down(Done done) = 0;
  /// Ends all that is under way with an error.
  virtual void close() = 0;
};

std::unique_ptr<Transport> make_plain_transport(boost::asio::ip::tcp::socket socket);
/// `context` must outlive the transport.
std::unique_ptr<Transport> make_tls_transport(boost::asio::ip::tcp::socket socket,
                                              boost::asio::ssl::context& context);

}  // namespace eider::server
