// Connections over a transport in memory: framing that two readers could read differently, and what bodies
// may take.
#include "server/http_connection.h"

#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>
#include <deque>

#include "tests/server/memory_transport.h"

namespace eider::server {
namespace {

/// Answers every request with "answer", and keeps their bodies.
class HttpConnectionTest : public testing::Test {
 protected:
  HttpConnectionTest() {
    host_.run_handler = [this](std::function<void()> work) { boost::asio::post(context_, std::move(work)); };
    host_.new_request_id = [] { return "id"; };
    host_.service.admit = [](const HttpRequest&) { return std::nullopt; };
    host_.service.answer = [this](HttpRequest request, std::shared_ptr<HttpReply> reply) {
      bodies_.push_back(std::move(request.body));
      if (answers_)
        reply->send({200, "text/plain", "answer", {}});
      else
        unanswered_.push_back(std::move(reply));
    };
    host_.service.refuse = [](int status, std::string_view, const std::string& message) {
      return HttpResponse{status, "text/plain", message, {}};
    };
  }
  ~HttpConnectionTest() override {
    for (const auto& connection : connections_) connection->close();
    unanswered_.clear();
    run();
  }

  /// A client that sends that, in pieces of a size, and waits; as far as it gets.
  MemoryClient& connect(const std::string& sends, std::size_t read_bytes = SIZE_MAX) {
    MemoryClient& client = clients_.emplace_back();
    client.sends = sends;
    client.read_bytes = read_bytes;
    connections_.push_back(std::make_shared<HttpConnection>(
        std::make_unique<MemoryTransport>(context_.get_executor(), client), host_, [] {}));
    connections_.back()->start();
    run();
    return client;
  }
  void run() {
    context_.restart();
    context_.poll();
  }
  boost::asio::io_context context_{1};
  HttpCounters counters_;
  ConnectionHost host_{context_.get_executor(), counters_};
  bool answers_ = true;
  std::vector<std::string> bodies_;
  std::vector<std::shared_ptr<HttpReply>> unanswered_;
  std::deque<MemoryClient> clients_;
  std::vector<std::shared_ptr<HttpConnection>> connections_;
};

const std::string kHead = "POST /x HTTP/1.1\r\nhost: h\r\n";

std::string with_length(std::size_t length) {
  return kHead + "content-length: " + std::to_string(length) + "\r\n\r\n";
}

// Its first bytes must not pass for a head that does not end.
TEST_F(HttpConnectionTest, ABodyAnnouncedTooLongIsRefusedAsSuch) {
  const std::string begin(2 * host_.options.max_header_bytes, 'x');
  for (const std::size_t read_bytes : {SIZE_MAX, std::size_t{100}}) {
    const std::string received =
        connect(with_length(host_.options.max_body_bytes + 1) + begin, read_bytes).received;
    EXPECT_TRUE(received.starts_with("HTTP/1.1 413 ")) << received;
  }
}

TEST_F(HttpConnectionTest, AnswersPipelinedRequestsInOrder) {
  const std::string received = connect(with_length(3) + "abc" + with_length(2) + "de").received;
  EXPECT_EQ(bodies_, (std::vector<std::string>{"abc", "de"}));
  EXPECT_NE(received.find("answer", received.find("answer") + 1), std::string::npos);
}

// A request that comes in pieces while the one before it is answered.
TEST_F(HttpConnectionTest, PiecesOfPipelinedRequestsStayInOrder) {
  std::string requests;
  std::vector<std::string> expected;
  for (const std::string body : {"abc", "defgh", "", "ijklmnopqrstuvwxyz"}) {
    requests += with_length(body.size()) + body;
    expected.push_back(body);
  }
  for (std::size_t bytes = 1; bytes < 80; ++bytes) {
    bodies_.clear();
    connect(requests, bytes);
    EXPECT_EQ(bodies_, expected) << "in pieces of " << bytes;
  }
}

TEST_F(HttpConnectionTest, RefusesLengthsThatCouldBeReadTwoWays) {
  for (const char* fields :
       {"content-length: 5\r\ntransfer-encoding: chunked\r\n",
        "transfer-encoding: chunked\r\ncontent-length: 5\r\n", "content-length: 5\r\ncontent-length: 6\r\n",
        "content-length: 5\r\ncontent-length: 5\r\n", "transfer-encoding:\r\ntransfer-encoding: chunked\r\n",
        "transfer-encoding:\r\ncontent-length: 5\r\n", "transfer-encoding: gzip, chunked\r\n",
        "content-length: +5\r\n", "content-length: 5, 5\r\n", "host: other\r\ncontent-length: 5\r\n"})
    EXPECT_TRUE(connect(kHead + fields + "\r\nabcde").received.starts_with("HTTP/1.1 400 ")) << fields;
  EXPECT_TRUE(bodies_.empty());
}

// Also where it comes line by line.
TEST_F(HttpConnectionTest, AHeadIsBounded) {
  const std::string line = "x: y\r\n";
  std::string head = "GET /12345678 HTTP/1.1\r\n";
  ASSERT_EQ(head.size(), 4 * line.size());
  for (int i = 0; i < 10'000; ++i) head += line;
  for (const std::size_t bytes : {std::size_t{1}, line.size(), std::size_t{1000}, SIZE_MAX})
    EXPECT_TRUE(connect(head, bytes).received.starts_with("HTTP/1.1 431 ")) << "in pieces of " << bytes;
}

// Else who may ask would depend on how the bytes are cut.
TEST_F(HttpConnectionTest, FieldsBehindABodyAreNoHead) {
  std::string key = "none";
  host_.service.admit = [&key](const HttpRequest& head) -> std::optional<HttpResponse> {
    key = head.header("x-api-key");
    return std::nullopt;
  };
  connect(kHead + "transfer-encoding: chunked\r\n\r\n1\r\na\r\n0\r\nx-api-key: k\r\n\r\n");
  EXPECT_EQ(key, "");
  EXPECT_EQ(bodies_, (std::vector<std::string>{"a"}));
}

TEST_F(HttpConnectionTest, AnAnnouncedBodyCostsNothing) {
  connect(with_length(host_.options.max_body_bytes));
  EXPECT_LT(host_.body_bytes, 100u);
}

TEST_F(HttpConnectionTest, BodiesTogetherAreBounded) {
  host_.options.max_bodies_bytes = 700'000;  // strings have room for up to twice what is in them
  answers_ = false;
  connect(with_length(300'000) + std::string(300'000, 'a'));
  ASSERT_EQ(unanswered_.size(), 1u);  // its body is still in use
  EXPECT_GE(host_.body_bytes, 300'000u);
  const MemoryClient& second = connect(with_length(300'000) + std::string(250'000, 'b'));
  EXPECT_TRUE(second.received.starts_with("HTTP/1.1 503 ")) << second.received;
  connect(with_length(1000) + std::string(1000, 'c'));
  EXPECT_EQ(unanswered_.size(), 2u);

  unanswered_[0]->send({200, "text/plain", "", {}});
  run();
  EXPECT_LT(host_.body_bytes, 10'000u);
  connect(kHead + "transfer-encoding: chunked\r\n\r\n493e0\r\n" + std::string(300'000, 'd') +
          "\r\n0\r\n\r\n");
  EXPECT_EQ(bodies_.back(), std::string(300'000, 'd'));
}

}  // namespace
}  // namespace eider::server
