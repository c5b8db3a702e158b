// The edge to the network: any bytes of a client, in pieces of any size, through a connection to a service
// that answers in each of the ways there are. However the bytes are cut, the same requests must come out.
#include <boost/asio/io_context.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "server/http_connection.h"
#include "tests/server/memory_transport.h"

namespace {

using namespace eider::server;

constexpr std::size_t kMostBody = 1024;

/// What the service was asked, in order.
using Asked = std::vector<std::string>;

std::size_t count(const HttpRequest& request, std::string_view name) {
  return static_cast<std::size_t>(std::count_if(request.headers.begin(), request.headers.end(),
                                                [&](const auto& header) { return header.first == name; }));
}

/// What two readers of one request could take for different lengths of its body.
void check_framing(const HttpRequest& request) {
  const std::size_t lengths = count(request, "content-length"), codings = count(request, "transfer-encoding");
  EIDER_CHECK(lengths + codings <= 1);
  EIDER_CHECK(request.body.size() <= kMostBody);
  if (lengths == 1)
    EIDER_CHECK(std::stoull(std::string(request.header("content-length"))) == request.body.size());
  if (lengths + codings == 0) EIDER_CHECK(request.body.empty());
}

/// The path's second byte says how.
void answer(const HttpRequest& request, const std::shared_ptr<HttpReply>& reply) {
  const char way = request.path.size() > 1 ? request.path[1] : '\0';
  HttpResponse response;
  response.status = way == 'n' ? 204 : 200;
  response.body = way == 'n' ? "" : "answer";
  if (way == 'd') return;                                   // nothing is sent
  if (way == 'w') return reply->on_disconnect([reply] {});  // until the client leaves
  if (way != 's' && way != 'c') return reply->send(std::move(response));
  reply->begin_stream(std::move(response));
  reply->write("piece");
  reply->write("");
  reply->write(std::string(300, 'x'));
  if (way == 's') reply->end_stream();  // else the handler drops it in the middle
}

Asked ask(MemoryClient client, bool stop_early) {
  boost::asio::io_context context{1};
  Asked asked;
  HttpCounters counters;
  ConnectionHost host(context.get_executor(), counters);
  host.options.max_body_bytes = kMostBody;
  host.options.max_header_bytes = 512;
  host.options.max_unsent_bytes = 4096;
  host.run_handler = [&](std::function<void()> work) { boost::asio::post(context, std::move(work)); };
  host.new_request_id = [] { return "id"; };
  host.service.admit = [](const HttpRequest& head) -> std::optional<HttpResponse> {
    if (head.path.starts_with("/no")) return HttpResponse{401, "text/plain", "no", {}};
    return std::nullopt;
  };
  host.service.answer = [&](const HttpRequest& request, const std::shared_ptr<HttpReply>& reply) {
    check_framing(request);
    asked.push_back(request.method + ' ' + request.path + ' ' + request.body);
    answer(request, reply);
  };
  host.service.refuse = [](int status, std::string_view /*path*/, const std::string& message) {
    return HttpResponse{status, "text/plain", message, {}};
  };
  int ended = 0;
  const auto connection = std::make_shared<HttpConnection>(
      std::make_unique<MemoryTransport>(context.get_executor(), client), host, [&] { ++ended; });
  const auto run = [&context] {
    context.restart();
    context.poll();
  };
  connection->start();
  run();
  if (stop_early) connection->stop_when_idle();
  run();
  connection->close();
  run();
  EIDER_CHECK(ended == 1);
  EIDER_CHECK(client.closed);
  constexpr std::string_view kBegin = "HTTP/1.1 ";  // of which a client that leaves may get less
  EIDER_CHECK(kBegin.starts_with(std::string_view(client.received).substr(0, kBegin.size())));
  return asked;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 3) return 0;
  MemoryClient client;
  client.sends.assign(reinterpret_cast<const char*>(data + 3), size - 3);
  client.leaves = (data[2] & 1U) != 0;
  const bool stop_early = (data[2] & 2U) != 0;
  const Asked whole = ask(client, stop_early);
  client.read_bytes = data[0] % 64U + 1;
  client.write_bytes = data[1] % 64U + 1;
  const Asked in_pieces = ask(client, stop_early);
  // A client that leaves may do so before all that it sent is looked at.
  if (!client.leaves) EIDER_CHECK(in_pieces == whole);
  return 0;
}
