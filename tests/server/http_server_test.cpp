// Many clients over loopback at once, with answers from another thread, as the scheduler gives them: for the
// thread sanitizer above all.
#include "server/http_server.h"

#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/write.hpp>
#include <mutex>
#include <set>
#include <thread>

#include "tests/server/fake_server.h"

namespace eider::server {
namespace {

namespace net = boost::asio;

/// Answers on a thread of its own with the letters of "answer"; a request that was cancelled ends at once.
class OtherThread {
 public:
  std::variant<serving::RequestId, serving::Refusal> submit(const serving::Request& request,
                                                            const serving::EventSink& sink) {
    const std::lock_guard lock(mutex_);
    if (finished_) return serving::Refusal{};
    const serving::RequestId id = ++last_id_;
    net::post(thread_, [this, id, prompt_tokens = std::ssize(request.prompt), sink] {
      sink(serving::Started{});
      serving::Finished finished;
      finished.prompt_tokens = prompt_tokens;
      for (const char letter : std::string_view("answer")) {
        if (is_cancelled(id)) finished.reason = FinishReason::kCancelled;
        if (is_cancelled(id)) break;
        sink(serving::Delta{0, std::string(1, letter), static_cast<TokenId>(letter), {}, {}});
      }
      sink(finished);
    });
    return id;
  }
  void cancel(serving::RequestId id) {
    const std::lock_guard lock(mutex_);
    cancelled_.insert(id);
  }
  /// What is submitted from now on is refused: nobody would answer it while the server is there.
  void finish() {
    {
      const std::lock_guard lock(mutex_);
      finished_ = true;
    }
    thread_.join();
  }

 private:
  bool is_cancelled(serving::RequestId id) {
    const std::lock_guard lock(mutex_);
    return cancelled_.contains(id);
  }

  std::mutex mutex_;
  serving::RequestId last_id_ = 0;
  std::set<serving::RequestId> cancelled_;
  bool finished_ = false;
  net::thread_pool thread_{1};
};

std::string framed(const std::string& body) {
  return fmt::format("POST /v1/chat/completions HTTP/1.1\r\nhost: h\r\ncontent-length: {}\r\n\r\n{}",
                     body.size(), body);
}

/// All that comes for `request` until the server closes; nothing where the client does not wait for it.
std::string exchange(std::uint16_t port, const std::string& request, bool waits) {
  net::io_context context;
  net::ip::tcp::socket socket(context);
  socket.connect({net::ip::make_address("127.0.0.1"), port});
  net::write(socket, net::buffer(request));
  std::string received;
  boost::system::error_code ended;
  if (waits) net::read(socket, net::dynamic_buffer(received), ended);
  return received;
}

TEST(HttpServer, ManyClientsAtOnce) {
  FakeServer fake;
  OtherThread scheduler;
  fake.context.render = [](const Json&, const Json&) -> Result<std::string> { return std::string("prompt"); };
  fake.context.log = {};
  fake.context.scheduler.submit = [&](const serving::Request& request, const serving::EventSink& sink) {
    return scheduler.submit(request, sink);
  };
  fake.context.scheduler.cancel = [&](serving::RequestId id) { scheduler.cancel(id); };
  HttpServerOptions options;
  options.port = 0;
  auto server = HttpServer::start(options, make_service(fake.context), fake.http_counters);
  ASSERT_TRUE(server.ok()) << server.error().message();
  const std::uint16_t port = (*server)->port();

  const std::string messages = R"({"messages": [{"role": "user", "content": "Hi"}])";
  const std::string last = "GET /metrics HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n";
  std::vector<std::thread> clients;
  for (int client = 0; client < 8; ++client) {
    clients.emplace_back([&] {
      for (int round = 0; round < 20; ++round) {
        const std::string whole =
            exchange(port, framed(messages + "}") + framed(messages + "}") + last, true);
        EXPECT_NE(whole.find("eider_http_requests_total"), std::string::npos) << whole;
        EXPECT_NE(whole.find(R"("content":"answer")"), std::string::npos) << whole;
        const std::string stream = exchange(port, framed(messages + R"(, "stream": true})") + last, true);
        EXPECT_NE(stream.find("data: [DONE]"), std::string::npos) << stream;
        exchange(port, framed(messages + R"(, "stream": true})"), false);
        EXPECT_TRUE(exchange(port, "GET / HTTP/2.0\r\n\r\n", true).starts_with("HTTP/1.1 400 "));
      }
    });
  }
  for (std::thread& client : clients) client.join();
  (*server)->stop_accepting();
  EXPECT_TRUE((*server)->wait_until_closed(std::chrono::steady_clock::now() + std::chrono::seconds(20)));
  scheduler.finish();
}

}  // namespace
}  // namespace eider::server
