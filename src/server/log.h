// The server's log: lines of key=value on stderr, one for each request and one for what else happens. Texts
// of prompts and answers are not in it.
#pragma once

#include <memory>
#include <string>

#include "server/context.h"

namespace spdlog {
class logger;
}

namespace eider::server {

/// May be used from any thread.
class Log {
 public:
  Log();
  ~Log();

  void request(const RequestRecord& record);
  void warning(const std::string& line);
  void note(const std::string& line);

 private:
  std::shared_ptr<spdlog::logger> logger_;
};

}  // namespace eider::server
