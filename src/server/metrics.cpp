#include "server/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/metric_family.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <iterator>
#include <limits>
#include <vector>

#include "server/context.h"

namespace eider::server {
namespace {

using prometheus::ClientMetric;
using prometheus::Histogram;
using prometheus::MetricFamily;
using prometheus::MetricType;

const Histogram::BucketBoundaries kSeconds{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25,
                                           0.5,   1,      2.5,   5,    10,    30,   60};

MetricFamily family(const char* name, const char* help, MetricType type, double value) {
  ClientMetric metric;
  if (type == MetricType::Counter)
    metric.counter.value = value;
  else
    metric.gauge.value = value;
  return {name, help, type, {metric}};
}

MetricFamily step_histogram(const serving::SchedulerStats& stats) {
  ClientMetric metric;
  metric.histogram.sample_count = static_cast<std::uint64_t>(stats.steps);
  metric.histogram.sample_sum = stats.step_seconds;
  std::uint64_t below = 0;
  for (std::size_t i = 0; i < stats.step_counts.size(); ++i) {
    below += static_cast<std::uint64_t>(stats.step_counts[i]);
    const bool last = i >= std::size(serving::kStepSecondsBounds);
    metric.histogram.bucket.push_back(
        {below, last ? std::numeric_limits<double>::infinity() : serving::kStepSecondsBounds[i]});
  }
  return {"eider_step_seconds", "Time of one step of the engine", MetricType::Histogram, {metric}};
}

/// What the scheduler and the edge count themselves.
std::vector<MetricFamily> counted_elsewhere(const serving::SchedulerStats& scheduler,
                                            const HttpCounters& http) {
  struct Row {
    const char* name;
    const char* help;
    MetricType type;
    std::int64_t value;
  };
  const auto gauge = MetricType::Gauge, counter = MetricType::Counter;
  const Row rows[] = {
      {"eider_requests_queued", "Requests that wait", gauge, scheduler.queued},
      {"eider_requests_running", "Requests being computed", gauge, scheduler.running},
      {"eider_streams", "Answers being computed", gauge, scheduler.streams},
      {"eider_kv_bytes", "Bytes of KV blocks in use", gauge, scheduler.kv_bytes},
      {"eider_kv_allocated_bytes", "Bytes of KV blocks in all", gauge, scheduler.kv_allocated_bytes},
      {"eider_sessions_in_memory", "Sessions remembered in memory", gauge, scheduler.sessions_in_memory},
      {"eider_sessions_on_disk", "Sessions saved on disk", gauge, scheduler.sessions_on_disk},
      {"eider_sessions_disk_bytes", "Bytes of saved sessions", gauge, scheduler.disk_bytes},
      {"eider_requests_total", "Requests that the scheduler took", counter, scheduler.requests},
      {"eider_requests_refused_total", "Requests that the scheduler refused", counter, scheduler.refused},
      {"eider_requests_finished_total", "Requests answered to their end", counter, scheduler.finished},
      {"eider_requests_cancelled_total", "Requests whose client left", counter, scheduler.cancelled},
      {"eider_requests_failed_total", "Requests that an error ended", counter, scheduler.failed},
      {"eider_requests_out_of_time_total", "Requests that their deadline ended", counter,
       scheduler.out_of_time},
      {"eider_prompt_tokens_total", "Tokens of prompts", counter, scheduler.prompt_tokens},
      {"eider_cached_tokens_total", "Of these, taken from the cache", counter, scheduler.cached_tokens},
      {"eider_generated_tokens_total", "Tokens generated", counter, scheduler.generated_tokens},
      {"eider_sessions_dropped_total", "Sessions forgotten for want of room", counter,
       scheduler.dropped_sessions},
      {"eider_sessions_saved_total", "Sessions written to disk", counter, scheduler.saved_sessions},
      {"eider_sessions_loaded_total", "Sessions read from disk", counter, scheduler.loaded_sessions},
      {"eider_session_files_damaged_total", "Saved sessions that were damaged", counter,
       scheduler.damaged_files},
      {"eider_preemptions_total", "Running requests that began anew for want of memory", counter,
       scheduler.preemptions},
      {"eider_http_connections", "Connections that are open", gauge, http.connections},
      {"eider_http_connections_total", "Connections accepted", counter, http.accepted},
      {"eider_http_connections_refused_total", "Connections beyond the limit", counter,
       http.refused_connections},
      {"eider_http_malformed_requests_total", "Requests that were malformed, too large or too slow", counter,
       http.refused_requests},
  };
  std::vector<MetricFamily> families;
  for (const Row& row : rows)
    families.push_back(family(row.name, row.help, row.type, static_cast<double>(row.value)));
  families.push_back(step_histogram(scheduler));
  return families;
}

}  // namespace

struct Metrics::Impl {
  prometheus::Registry registry;
  prometheus::Family<prometheus::Counter>& requests = prometheus::BuildCounter()
                                                          .Name("eider_http_requests_total")
                                                          .Help("HTTP requests by path and status")
                                                          .Register(registry);
  Histogram& queued =
      histogram("eider_request_queued_seconds", "Time from a request's arrival to its first step");
  Histogram& ttft = histogram("eider_request_ttft_seconds", "Time to first token");
  Histogram& tpot = histogram("eider_request_tpot_seconds", "Mean time per token after the first");
  Histogram& total = histogram("eider_request_seconds", "Time of whole requests that generated tokens");

  Histogram& histogram(const char* name, const char* help) {
    return prometheus::BuildHistogram().Name(name).Help(help).Register(registry).Add({}, kSeconds);
  }
};

Metrics::Metrics() : impl_(std::make_unique<Impl>()) {}
Metrics::~Metrics() = default;

void Metrics::count(const RequestRecord& record) {
  // Paths of the wild are no labels: each would be a time series.
  impl_->requests.Add({{"path", std::string(record.endpoint)}, {"status", std::to_string(record.status)}})
      .Increment();
  if (record.finish_reason.empty()) return;
  constexpr double kMillisecond = 1e-3;
  impl_->queued.Observe(record.queued_ms * kMillisecond);
  impl_->total.Observe(record.total_ms * kMillisecond);
  if (record.ttft_ms > 0) impl_->ttft.Observe(record.ttft_ms * kMillisecond);
  if (record.tpot_ms > 0) impl_->tpot.Observe(record.tpot_ms * kMillisecond);
}

std::string Metrics::text(const serving::SchedulerStats& scheduler, const HttpCounters& http) const {
  std::vector<MetricFamily> families = impl_->registry.Collect();
  for (MetricFamily& more : counted_elsewhere(scheduler, http)) families.push_back(std::move(more));
  return prometheus::TextSerializer().Serialize(families);
}

}  // namespace eider::server
