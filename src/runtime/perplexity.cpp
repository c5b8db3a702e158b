#include "runtime/perplexity.h"

#include <algorithm>

#include "ops/double_math.h"
#include "runtime/log_softmax.h"

namespace eider {

double negative_log_likelihood(std::span<const float> logits, TokenId id) {
  return LogSoftmax(logits).negative_log_likelihood(id);
}

Result<Perplexity> measure_perplexity(Engine& engine, std::span<const TokenId> ids,
                                      const std::function<bool(std::int64_t, std::int64_t)>& progress) {
  constexpr const char* kTooFew = "perplexity needs at least 2 tokens, not {}";
  if (ids.size() < 2) return error(kTooFew, ids.size());
  Session session = engine.new_session();
  EIDER_TRY_STATUS(session.check_room(static_cast<std::int64_t>(ids.size())));

  Perplexity result;
  result.argmax.reserve(ids.size());
  result.nll.reserve(ids.size());
  const auto most =
      static_cast<std::size_t>(std::min(engine.options().max_batch_tokens, engine.options().max_logit_rows));
  while (result.argmax.size() < ids.size()) {
    const std::size_t begin = result.argmax.size();
    const Chunk chunk{&session, ids.subspan(begin, std::min(most, ids.size() - begin)), LogitsWanted::kAll};
    EIDER_TRY_STATUS(engine.forward({&chunk, 1}));
    for (std::size_t row = 0; row < chunk.tokens.size(); ++row) {
      const std::span<const float> logits = engine.logits(static_cast<std::int64_t>(row));
      // max_element gives the first of equal ones: the lowest id.
      result.argmax.push_back(
          static_cast<TokenId>(std::max_element(logits.begin(), logits.end()) - logits.begin()));
      const std::size_t next = begin + row + 1;
      if (next < ids.size()) result.nll.push_back(negative_log_likelihood(logits, ids[next]));
    }
    const auto done = static_cast<std::int64_t>(result.argmax.size());
    if (progress && !progress(done, static_cast<std::int64_t>(ids.size()))) break;
  }

  if (result.argmax.size() < 2) return error(kTooFew, result.argmax.size());
  result.nll.resize(result.argmax.size() - 1);
  double sum = 0;
  for (const double nll : result.nll) sum += nll;
  result.perplexity = exp64(sum / static_cast<double>(result.nll.size()));
  return result;
}

}  // namespace eider
