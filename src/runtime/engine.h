// Engine: a loaded model ready to run steps. Immutable after load but for its working memory; sessions are passed in.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "base/result.h"
#include "model/model.h"
#include "ops/backend.h"
#include "runtime/kv_pool.h"
#include "runtime/session.h"

namespace eider {

struct EngineOptions {
  std::int64_t context = 0;           ///< most tokens of a session; 0: the model's own
  std::int64_t max_batch_tokens = 512;  ///< most rows of one step (-ub)
  std::int64_t max_logit_rows = 8;    ///< most rows whose logits one step may give
  KvType kv_type = KvType::kF16;
  std::int64_t kv_limit_bytes = 0;    ///< most memory for KV blocks; 0: no limit
};

enum class LogitsWanted : std::uint8_t { kNone, kLast, kAll };

/// Tokens that continue one session in a step.
struct Chunk {
  Session* session = nullptr;
  std::span<const TokenId> tokens;
  LogitsWanted logits = LogitsWanted::kLast;
};

class Engine {
 public:
  static Result<std::unique_ptr<Engine>> create(Model model, Backend& backend, const EngineOptions& options);

  const Model& model() const { return model_; }
  const EngineOptions& options() const { return options_; }

  Session new_session();

  /// One run of the plan over all chunks' tokens, each chunk appended to its session (a session appears once). Fails,
  /// leaving the sessions' lengths as they were: a context overflow, more rows than the options allow, a token outside
  /// the vocabulary, or logits that are not finite (the step is then run again with checks, and the error names the
  /// first layer and operation that made one).
  Status forward(std::span<const Chunk> chunks, const Observer* observer = nullptr);

  /// Row `index` of the last forward()'s logits, chunks in order: [vocab_size].
  std::span<const float> logits(std::int64_t index = 0) const;
  std::int64_t logit_rows() const { return logit_rows_; }

  /// Prefills all but nothing is sampled: tokens in chunks of max_batch_tokens, logits of the last one kept.
  /// progress(done, total) after each chunk; it stops early, successfully, when that returns false.
  Status prefill(Session& session, std::span<const TokenId> tokens,
                 const std::function<bool(std::int64_t, std::int64_t)>& progress = {});

  const KvPool& kv_pool() const { return kv_pool_; }

 private:
  Engine(Model model, Backend& backend, const EngineOptions& options);
  std::string first_non_finite(const StepState& state);

  Model model_;
  EngineOptions options_;
  KvPool kv_pool_;
  std::unique_ptr<Executable> executable_;
  std::int64_t logit_rows_ = 0;
  // The step's rows, sized once.
  std::vector<TokenId> token_ids_;
  std::vector<std::int32_t> positions_, sequence_, rows_wanted_;
  std::vector<SequenceBlocks> sequences_;
};

}  // namespace eider
