// The endpoints, one file for each family of them. Each reads its request as its API's page lists the fields;
// what is wrong with it goes to `problem`, and the router answers with that.
#pragma once

#include "server/context.h"
#include "server/fields.h"

namespace eider::server {

/// Endpoints that stream, or wait for the scheduler: they hand the exchange on, or leave a problem.
void chat_completions(const Context& context, Exchange& exchange, const Json& body, Problem& problem);
void completions(const Context& context, Exchange& exchange, const Json& body, Problem& problem);
void messages(const Context& context, Exchange& exchange, const Json& body, Problem& problem);
void responses(const Context& context, Exchange& exchange, const Json& body, Problem& problem);
void embeddings(const Context& context, Exchange& exchange, const Json& body, Problem& problem);

/// Endpoints that have their answer at once.
Json count_tokens(const Context& context, const Json& body, Problem& problem);
Json tokenize(const Context& context, const Json& body, Problem& problem);
Json detokenize(const Context& context, const Json& body, Problem& problem);
Json apply_template(const Context& context, const Json& body, Problem& problem);
Json list_models(const Context& context);

}  // namespace eider::server
