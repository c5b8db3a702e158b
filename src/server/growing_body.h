// GrowingBody: a request's body for Beast's parser, in a string that grows with what has come. Beast's own
// takes memory for the whole length that a client announces, which costs the client nothing.
#pragma once

#include <boost/asio/buffer.hpp>
#include <boost/beast/core/buffers_range.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/optional/optional.hpp>
#include <cstdint>
#include <string>

namespace eider::server {

struct GrowingBody {
  using value_type = std::string;

  class reader {
   public:
    template <bool is_request, class Fields>
    reader(boost::beast::http::header<is_request, Fields>& /*head*/, value_type& body) : body_(body) {}

    void init(const boost::optional<std::uint64_t>& /*length*/, boost::system::error_code& problem) {
      problem = {};
    }
    template <class Buffers>
    std::size_t put(const Buffers& buffers, boost::system::error_code& problem) {
      problem = {};
      const std::size_t before = body_.size();
      for (const auto piece : boost::beast::buffers_range_ref(buffers))
        body_.append(static_cast<const char*>(piece.data()), piece.size());
      return body_.size() - before;
    }
    void finish(boost::system::error_code& problem) { problem = {}; }

   private:
    value_type& body_;
  };
};

}  // namespace eider::server
