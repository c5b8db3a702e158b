// The fields that say how an answer is generated, which several APIs share: read once, into the scheduler's
// request.
#pragma once

#include "server/context.h"
#include "server/fields.h"
#include "serving/request.h"

namespace eider::server {

/// A request with what the server's flags and the model's makers say.
serving::Request default_request(const Context& context, const Exchange& exchange);

/// "model": any name is this server's model; clients are made to name one.
void read_model(Fields& fields);

/// temperature, top_p, top_k, min_p, typical_p, repeat_penalty, frequency_penalty, presence_penalty,
/// repeat_last_n, logit_bias, seed.
void read_sampling(Fields& fields, const Context& context, serving::Request& request);
/// "stop", or the name that another API gives it.
void read_stop(Fields& fields, std::string_view key, serving::Request& request);
/// A count of tokens; absent: as many as fit.
void read_max_tokens(Fields& fields, std::string_view key, serving::Request& request);
void read_choices(Fields& fields, serving::Request& request);
/// response_format, or the `format` of /v1/responses' text: true for json_object; a schema is refused by
/// name.
bool read_response_format(Fields& fields, std::string_view key);

/// stream, and whether stream_options ask for the usage.
struct Streaming {
  bool on = false;
  bool include_usage = false;
};
Streaming read_streaming(Fields& fields);

}  // namespace eider::server
