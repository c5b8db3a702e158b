#include "server/router.h"

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <exception>
#include <utility>

#include "server/endpoints.h"
#include "text/json_text.h"

namespace eider::server {
namespace {

/// An endpoint has one of these functions.
struct Endpoint {
  std::string_view method, path;
  void (*hand_on)(const Context&, Exchange&, const Json& body, Problem&) = nullptr;
  Json (*compute)(const Context&, const Json& body, Problem&) = nullptr;
  HttpResponse (*look_up)(const Context&) = nullptr;
};

HttpResponse json_response(const Json& body) {
  HttpResponse response;
  response.body = to_json_text(body);
  return response;
}

HttpResponse health(const Context& /*context*/) {
  return json_response({{"status", "ok"}});
}

HttpResponse models(const Context& context) {
  return json_response(list_models(context));
}

/// GET /v1/models/NAME
HttpResponse model(const Context& context) {
  return json_response(list_models(context)["data"][0]);
}

HttpResponse metrics(const Context& context) {
  HttpResponse response;
  response.content_type = "text/plain; version=0.0.4; charset=utf-8";
  response.body = context.metrics->text(context.scheduler.stats(), *context.http);
  return response;
}

constexpr std::array kEndpoints = {
    Endpoint{.method = "GET", .path = "/health", .look_up = health},
    Endpoint{.method = "GET", .path = "/metrics", .look_up = metrics},
    Endpoint{.method = "GET", .path = "/v1/models", .look_up = models},
    Endpoint{.method = "GET", .path = "/v1/models/NAME", .look_up = model},
    Endpoint{.method = "POST", .path = "/v1/chat/completions", .hand_on = chat_completions},
    Endpoint{.method = "POST", .path = "/v1/completions", .hand_on = completions},
    Endpoint{.method = "POST", .path = "/v1/responses", .hand_on = responses},
    Endpoint{.method = "POST", .path = "/v1/messages", .hand_on = messages},
    Endpoint{.method = "POST", .path = "/v1/messages/count_tokens", .compute = count_tokens},
    Endpoint{.method = "POST", .path = "/v1/embeddings", .hand_on = embeddings},
    Endpoint{.method = "POST", .path = "/tokenize", .compute = tokenize},
    Endpoint{.method = "POST", .path = "/detokenize", .compute = detokenize},
    Endpoint{.method = "POST", .path = "/apply-template", .compute = apply_template},
};

bool is_at(const Context& context, const Endpoint& endpoint, std::string_view path) {
  constexpr std::string_view kModels = "/v1/models/";
  if (endpoint.look_up == model)
    return path.starts_with(kModels) && path.substr(kModels.size()) == context.model_id;
  return endpoint.path == path;
}

/// Null: there is none.
const Endpoint* endpoint_at(const Context& context, std::string_view path) {
  const auto* found = std::ranges::find_if(
      kEndpoints, [&](const Endpoint& candidate) { return is_at(context, candidate, path); });
  return found == kEndpoints.end() ? nullptr : found;
}

/// HEAD is GET without the body, which the edge leaves out.
bool answers(const Endpoint& endpoint, std::string_view method) {
  return endpoint.method == method || (endpoint.method == "GET" && method == "HEAD");
}

/// The key that a request brings; empty: none.
std::string_view key_of(const HttpRequest& request) {
  constexpr std::string_view kBearer = "bearer ";
  const std::string_view authorization = request.header("authorization");
  const bool is_bearer =
      authorization.size() > kBearer.size() &&
      std::equal(kBearer.begin(), kBearer.end(), authorization.begin(),
                 [](char expected, unsigned char given) { return expected == std::tolower(given); });
  return is_bearer ? authorization.substr(kBearer.size()) : request.header("x-api-key");
}

std::string sha256_hex(std::string_view text) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  EVP_Digest(text.data(), text.size(), digest.data(), &size, EVP_sha256(), nullptr);
  std::string hex;
  for (unsigned int i = 0; i < size; ++i) hex += fmt::format("{:02x}", digest[i]);
  return hex;
}

/// Compares digests, so that the time taken tells neither a key's length nor where a wrong one differs.
bool is_known_key(const Context& context, std::string_view key) {
  const std::string given = sha256_hex(key);
  bool known = false;
  for (const std::string& digest : context.api_key_digests)
    known = CRYPTO_memcmp(given.data(), digest.data(), std::min(given.size(), digest.size())) == 0 || known;
  return known;
}

std::optional<ApiError> refusal_of(const Context& context, const HttpRequest& head) {
  // Load balancers ask for health without a key; browsers ask by OPTIONS before they show one.
  if (head.path == "/health" || head.method == "OPTIONS") return std::nullopt;
  if (!context.api_key_digests.empty() && !is_known_key(context, key_of(head)))
    return ApiError{401,
                    "a valid API key is needed: Authorization: Bearer KEY, or x-api-key: KEY",
                    "",
                    "invalid_api_key",
                    {}};
  const Endpoint* endpoint = endpoint_at(context, head.path);
  if (endpoint == nullptr)
    return ApiError{404, "there is no such endpoint; docs/SERVER.md lists them", "", "not_found", {}};
  if (!answers(*endpoint, head.method))
    return ApiError{
        405, fmt::format("{} answers {} only", head.path, endpoint->method), "", "method_not_allowed", {}};
  return std::nullopt;
}

void serve(const Context& context, HttpRequest request, std::shared_ptr<HttpReply> reply) {
  Exchange exchange;
  exchange.request = std::move(request);
  exchange.reply = std::move(reply);
  if (!context.api_key_digests.empty()) exchange.scope = sha256_hex(key_of(exchange.request));
  if (exchange.request.method == "OPTIONS") {
    HttpResponse response;
    response.status = 204;
    response.content_type = "";
    response.headers = {
        {"allow", "GET, HEAD, POST, OPTIONS"},
        {"access-control-allow-methods", "GET, POST"},
        {"access-control-allow-headers", "authorization, content-type, x-api-key, anthropic-version"}};
    return exchange.reply->send(std::move(response));
  }
  const Endpoint* endpoint = endpoint_at(context, exchange.request.path);
  if (endpoint == nullptr || !answers(*endpoint, exchange.request.method))
    return refuse(context, exchange, {404, "there is no such endpoint", "", "not_found", {}});
  exchange.endpoint = endpoint->path;
  if (endpoint->look_up != nullptr) {
    exchange.reply->send(endpoint->look_up(context));
    RequestRecord looked_up;
    looked_up.status = 200;
    return record(context, exchange, std::move(looked_up));
  }
  Problem problem;
  Json result;
  if (const std::optional<Json> body = parse_body(exchange.request.body, problem)) {
    if (endpoint->hand_on != nullptr)
      endpoint->hand_on(context, exchange, *body, problem);
    else
      result = endpoint->compute(context, *body, problem);
  }
  if (problem.first()) return refuse(context, exchange, *problem.first());
  if (endpoint->compute != nullptr) respond(context, exchange, result);
}

}  // namespace

HttpService make_service(const Context& context) {
  HttpService service;
  service.admit = [&context](const HttpRequest& head) -> std::optional<HttpResponse> {
    const auto failure = refusal_of(context, head);
    if (!failure) return std::nullopt;
    Exchange exchange;
    exchange.request = head;
    if (const Endpoint* endpoint = endpoint_at(context, head.path)) exchange.endpoint = endpoint->path;
    RequestRecord refused;
    refused.status = failure->status;
    refused.problem = failure->code;
    record(context, exchange, std::move(refused));
    return error_response(*failure, error_shape_for(head.path), head.id);
  };
  service.answer = [&context](HttpRequest request, std::shared_ptr<HttpReply> reply) {
    const std::string path = request.path, id = request.id;
    try {
      serve(context, std::move(request), reply);
    } catch (const std::exception& problem) {  // out of memory, say: the request fails, the server goes on
      reply->send(error_response({500, problem.what(), "", "", {}}, error_shape_for(path), id));
    }
  };
  service.refuse = [](int status, std::string_view path, const std::string& message) {
    ApiError failure{status, message, "", "", {}};
    if (status == 503) failure.retry_after_s = 1;
    return error_response(failure, error_shape_for(path), "");
  };
  return service;
}

std::vector<std::string> digests_of(const std::vector<std::string>& api_keys) {
  std::vector<std::string> digests;
  for (const std::string& key : api_keys) digests.push_back(sha256_hex(key));
  return digests;
}

}  // namespace eider::server
