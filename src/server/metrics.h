// Metrics: what the server has done and does, in Prometheus's text format. docs/SERVER.md lists the names.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "server/http_server.h"
#include "serving/scheduler.h"

namespace eider::server {

struct RequestRecord;

/// May be used from any thread.
class Metrics {
 public:
  Metrics();
  ~Metrics();
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  void count(const RequestRecord& record);
  std::string text(const serving::SchedulerStats& scheduler, const HttpCounters& http) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace eider::server
