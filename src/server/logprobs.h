// How chat completions and /v1/responses tell the probabilities of tokens.
#pragma once

#include "server/context.h"
#include "serving/request.h"

namespace eider::server {

/// The token as text; control tokens by their spelling.
std::string token_text(const Tokenizer& tokenizer, TokenId id);
/// {"token", "logprob", "bytes", "top_logprobs": [{...}]} of a token that has them.
Json logprob_entry(const Tokenizer& tokenizer, const serving::Delta& delta);

}  // namespace eider::server
