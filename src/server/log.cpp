#include "server/log.h"

#include <fmt/format.h>
#include <spdlog/logger.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <algorithm>

namespace eider::server {
namespace {

/// A path comes from the client: what could break a line is left out, and what is too long.
std::string printable_path(const std::string& path) {
  constexpr std::size_t kMostBytes = 80;
  std::string text = path.substr(0, kMostBytes);
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return c <= ' ' || c > '~' || c == '"'; }, '?');
  return text.empty() ? "-" : text;
}

}  // namespace

Log::Log()
    : logger_(std::make_shared<spdlog::logger>("eider", std::make_shared<spdlog::sinks::stderr_sink_mt>())) {
  logger_->set_formatter(std::make_unique<spdlog::pattern_formatter>("%Y-%m-%dT%H:%M:%S.%eZ %l %v",
                                                                     spdlog::pattern_time_type::utc));
  logger_->flush_on(spdlog::level::info);
}

Log::~Log() = default;

void Log::request(const RequestRecord& record) {
  std::string line =
      fmt::format("request id={} method={} path={} status={} total_ms={:.1f}", record.id,
                  printable_path(record.method), printable_path(record.path), record.status, record.total_ms);
  if (!record.problem.empty()) line += fmt::format(" problem={}", printable_path(record.problem));
  if (record.prompt_tokens > 0)
    line += fmt::format(" prompt={} cached={} completion={} queued_ms={:.1f} ttft_ms={:.1f} tpot_ms={:.2f}",
                        record.prompt_tokens, record.cached_tokens, record.completion_tokens,
                        record.queued_ms, record.ttft_ms, record.tpot_ms);
  if (!record.finish_reason.empty()) line += fmt::format(" finish={}", record.finish_reason);
  logger_->info("{}", line);
}

void Log::warning(const std::string& line) {
  logger_->warn("{}", line);
}

void Log::note(const std::string& line) {
  logger_->info("{}", line);
}

}  // namespace eider::server
