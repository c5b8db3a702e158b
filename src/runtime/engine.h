// Engine: a loaded model ready to run steps. Immutable after load but for its working memory; sessions are
// passed in.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/model.h"
#include "ops/backend.h"
#include "runtime/kv_pool.h"
#include "runtime/session.h"

namespace eider {

class PreparedModel;

/// Most tokens that a context may be asked to hold: beyond any model's, and small enough for a session's
/// tables.
inline constexpr std::int64_t kMaxContext = std::int64_t{1} << 24;

struct EngineOptions {
  std::int64_t context = 0;             ///< most tokens of a session; 0: the model's own
  std::int64_t max_batch_tokens = 512;  ///< most rows of one step (-ub)
  std::int64_t max_logit_rows = 8;      ///< most rows whose logits one step may give
  std::int64_t rows_beside = 0;         ///< most rows of a step while another is paused; 0: none ever is
  KvType kv_type = KvType::kF16;
  std::int64_t kv_limit_bytes = 0;  ///< most memory for KV blocks; 0: no limit
};

enum class LogitsWanted : std::uint8_t { kNone, kLast, kAll };

/// Tokens that continue one session in a step; at least one.
struct Chunk {
  Session* session = nullptr;
  std::span<const TokenId> tokens;
  LogitsWanted logits = LogitsWanted::kLast;
};

/// Not thread-safe: one step at a time.
class Engine {
 public:
  /// Compiles the model's plan. `backend` must outlive the engine, and the engine its sessions. `prepared`:
  /// where the weights are in the backend's form; null: the backend makes it. Fails on sizes out of range
  /// (naming the flag) and where the backend does.
  static Result<std::unique_ptr<Engine>> create(Model model, Backend& backend, const EngineOptions& options,
                                                std::shared_ptr<PreparedModel> prepared = nullptr);
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  const Model& model() const { return model_; }
  /// As given, with the context filled in.
  const EngineOptions& options() const { return options_; }
  /// May be null.
  PreparedModel* prepared() const { return prepared_.get(); }

  Session new_session() { return Session(kv_pool_, options_.context); }

  /// One run of the plan over all chunks' tokens, each chunk appended to its session (a session appears
  /// once). Fails, leaving the sessions' lengths as they were: a context overflow, more rows than the options
  /// allow, a token outside the vocabulary, prepared weights that turned out to be damaged, or logits that
  /// are not finite (the step is then run again with checks, and the error names the first layer and
  /// operation that made one). Allocates nothing but, rarely, a slab of KV blocks.
  Status forward(std::span<const Chunk> chunks, const Observer* observer = nullptr);

  /// As forward(), but in parts: false where the step pauses because `pause` said so before an operation.
  /// The next call goes on with it, for the same chunks, whose sessions and tokens nobody has touched;
  /// meanwhile forward() may run other sessions' steps, of up to rows_beside rows. After an error no step is
  /// paused.
  Result<bool> forward_part(std::span<const Chunk> chunks, Pause pause, const Observer* observer = nullptr);
  /// Forgets the step that is paused, if one is; its sessions may then be touched.
  void abandon_part();

  /// Row `index` of the logits of the last step that ended, chunks in order: [vocab_size].
  std::span<const float> logits(std::int64_t index = 0) const;
  std::int64_t logit_rows() const { return logit_rows_; }

  /// Appends `tokens` to the session in chunks of max_batch_tokens; the last token's logits are logits(0).
  /// progress(done, total) after each chunk; it stops early, successfully, when that returns false.
  Status prefill(Session& session, std::span<const TokenId> tokens,
                 const std::function<bool(std::int64_t, std::int64_t)>& progress = {});

  const KvPool& kv_pool() const { return kv_pool_; }

 private:
  Engine(Model model, Backend& backend, const EngineOptions& options);

  /// The rows of a step; room for max_batch_tokens.
  struct Step {
    std::vector<TokenId> token_ids;
    std::vector<std::int32_t> positions, sequence, rows_wanted;
    std::vector<SequenceBlocks> sequences;

    void reserve(std::int64_t rows);
    void clear();
    StepState state() const { return {token_ids, positions, sequence, sequences, rows_wanted}; }
  };

  Status check_chunks(std::span<const Chunk> chunks, std::int64_t most_tokens) const;
  Status begin(std::span<const Chunk> chunks, std::int64_t most_tokens, Step& step);
  Status end(std::span<const Chunk> chunks, const Step& step);
  Error describe_non_finite(const Step& step);

  Model model_;
  EngineOptions options_;
  KvPool kv_pool_;
  std::shared_ptr<PreparedModel> prepared_;
  std::unique_ptr<Executable> executable_;
  std::int64_t logit_rows_ = 0;
  Step step_, paused_;  // of forward() and of forward_part()
  bool is_paused_ = false;
};

}  // namespace eider
