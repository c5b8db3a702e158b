// HTTP as the endpoints see it: a request that has come whole, and where its answer goes. Beast and sockets
// are behind http_server.h; nothing here knows what a request means.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace eider::server {

using HttpHeaders = std::vector<std::pair<std::string, std::string>>;

struct HttpRequest {
  std::string method;   ///< "GET"
  std::string path;     ///< of the target, without its query
  HttpHeaders headers;  ///< names in lower case
  std::string body;
  std::string id;  ///< x-request-id: the client's where that is short and plain, else one of ours

  /// The value of a header by its name in lower case; empty where there is none.
  std::string_view header(std::string_view name) const;
};

struct HttpResponse {
  int status = 200;
  std::string content_type = "application/json";
  std::string body;
  HttpHeaders headers;  ///< besides content type, length and x-request-id
};

/// Where the answer of one request goes: one send(), or begin_stream(), any number of write() and
/// end_stream(). All functions may be called from any thread and return at once; the calls of one thread keep
/// their order. Once the client is gone they do nothing.
class HttpReply {
 public:
  virtual ~HttpReply() = default;

  virtual void send(HttpResponse response) = 0;
  /// Sends the head of `head`, whose body is not used; what follows goes out piece by piece.
  virtual void begin_stream(HttpResponse head) = 0;
  virtual void write(std::string piece) = 0;
  virtual void end_stream() = 0;

  /// Runs `work` on the thread of the connections, in the order of the calls. It must be short.
  virtual void post(std::function<void()> work) = 0;
  /// `gone` is called once on that thread where the client leaves before its answer is out, also where it has
  /// left already.
  virtual void on_disconnect(std::function<void()> gone) = 0;
};

/// What the server does with requests.
struct HttpService {
  /// Looks at a request's head before its body is read, on the thread of the connections: a response refuses
  /// it.
  std::function<std::optional<HttpResponse>(const HttpRequest& head)> admit;
  /// Answers a request, on a thread that may take its time.
  std::function<void(HttpRequest request, std::shared_ptr<HttpReply> reply)> answer;
  /// What the edge itself refuses (malformed, too large, too slow), as a response; `path` may be empty.
  std::function<HttpResponse(int status, std::string_view path, const std::string& message)> refuse;
};

}  // namespace eider::server
