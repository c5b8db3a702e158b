// Perplexity: how well a model predicts a text it is given token by token (teacher forcing), in one context.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/result.h"
#include "base/token_id.h"
#include "runtime/engine.h"

namespace eider {

struct Perplexity {
  double perplexity = 0;        ///< exp of the mean of nll
  std::vector<double> nll;      ///< [tokens - 1]: -ln p(token i + 1 | tokens 0..i)
  std::vector<TokenId> argmax;  ///< [tokens]: the likeliest token after tokens 0..i, lowest id on ties
};

/// Runs `ids` (at least 2, all in one context) through a new session, chunk by chunk. progress(done, total)
/// after each chunk; when it returns false the result covers the tokens done so far (an error if fewer than
/// 2). The engine's max_logit_rows bounds a chunk: give it as many as max_batch_tokens.
Result<Perplexity> measure_perplexity(Engine& engine, std::span<const TokenId> ids,
                                      const std::function<bool(std::int64_t, std::int64_t)>& progress = {});

/// -ln softmax(logits)[id]: weights by the engine's exp, their sum and the logarithm in double.
double negative_log_likelihood(std::span<const float> logits, TokenId id);

}  // namespace eider
