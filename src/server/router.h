// Router: which endpoint answers which path, who may ask, and how what goes wrong is told.
#pragma once

#include <string>
#include <vector>

#include "server/context.h"
#include "server/http.h"

namespace eider::server {

/// The service of an HTTP server. `context` must outlive it.
HttpService make_service(const Context& context);
/// What Context::api_key_digests are.
std::vector<std::string> digests_of(const std::vector<std::string>& api_keys);

}  // namespace eider::server
