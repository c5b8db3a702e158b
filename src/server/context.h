// Context: what all endpoints share, and Exchange: one request under way.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/result.h"
#include "runtime/sampler.h"
#include "server/api_error.h"
#include "server/fields.h"
#include "server/http.h"
#include "server/json_mask.h"
#include "server/metrics.h"
#include "server/prompt_memory.h"
#include "server/response_store.h"
#include "server/tool_calls.h"
#include "serving/request.h"
#include "serving/scheduler.h"
#include "text/tokenizer.h"

namespace eider::server {

/// The scheduler as the endpoints see it, so that tests can stand in for it.
struct SchedulerPort {
  std::function<std::variant<serving::RequestId, serving::Refusal>(serving::Request, serving::EventSink)>
      submit;
  std::function<void(serving::RequestId)> cancel;
  std::function<serving::SchedulerStats()> stats;
};

/// What one request came to, for the log and the metrics. Times in milliseconds; zero where nothing was
/// measured.
struct RequestRecord {
  std::string id, method, path;
  std::string_view endpoint;  ///< as Exchange::endpoint
  int status = 0;
  std::int64_t prompt_tokens = 0, cached_tokens = 0, completion_tokens = 0;
  double queued_ms = 0, ttft_ms = 0, tpot_ms = 0, total_ms = 0;
  std::string finish_reason;  ///< empty: nothing was generated
  std::string problem;        ///< what was refused or went wrong; never text of prompts
};

struct Context {
  std::string model_id;      ///< the name that /v1/models tells
  std::string version;       ///< of eider
  std::int64_t created = 0;  ///< seconds since 1970
  const Tokenizer* tokenizer = nullptr;
  std::int64_t max_context = 0;
  std::int64_t hidden_size = 0;
  /// The chat template's text of `conversation`, with variables that the request sets; empty: there is no
  /// template.
  std::function<Result<std::string>(const Json& conversation, const Json& variables)> render;
  std::shared_ptr<const JsonTokens> json_tokens;
  const ToolFormat* tool_format = nullptr;  ///< null: the template's calls are not understood
  SamplerOptions sampling;                  ///< what requests do not say
  std::optional<std::uint64_t> seed;
  SchedulerPort scheduler;
  const HttpCounters* http = nullptr;
  std::vector<std::string> api_key_digests;  ///< of digests_of(); empty: anyone may ask
  std::function<void(const RequestRecord&)> log;
  Metrics* metrics = nullptr;
  ResponseStore* responses = nullptr;
  PromptMemory* prompts = nullptr;
};

/// One request under way.
struct Exchange {
  HttpRequest request;
  std::shared_ptr<HttpReply> reply;
  std::string_view endpoint = "other";  ///< its path in the router's table; "other": there is none
  std::string scope;                    ///< whose cache entries and responses it may see
  std::chrono::steady_clock::time_point arrived = std::chrono::steady_clock::now();
};

/// Tells log and metrics of a request that has come to its end.
void record(const Context& context, const Exchange& exchange, RequestRecord record);
/// Answers with an error, and records it.
void refuse(const Context& context, const Exchange& exchange, const ApiError& failure);
/// Answers with `body`, and records it.
void respond(const Context& context, const Exchange& exchange, const Json& body);

/// "chatcmpl-" and 24 random letters and digits.
std::string new_id(std::string_view prefix, std::size_t length = 24);
std::int64_t unix_seconds();

}  // namespace eider::server
