// A backend whose "model" is a digest: it stores each token's id in its KV blocks and makes logits from the
// ids that a row may see, read back through the block tables. So a wrong position, table, window or batch
// shows in the logits.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model/model.h"
#include "ops/backend.h"

namespace eider::test {

inline constexpr std::int64_t kFakeVocab = 64;

/// Mixes one visible token into a digest.
inline std::uint64_t mix(std::uint64_t digest, std::int64_t position, TokenId token) {
  digest ^=
      static_cast<std::uint64_t>(position) * 0x9e3779b97f4a7c15u + static_cast<std::uint64_t>(token) + 1;
  digest *= 0xbf58476d1ce4e5b9u;
  return digest ^ (digest >> 29);
}

/// The digest of what position `position` sees, from the plain tokens: what the fake model must compute.
inline std::uint64_t expected_digest(std::span<const TokenId> tokens, std::int64_t position,
                                     const std::vector<KvKind>& kinds) {
  std::uint64_t digest = 0;
  for (const KvKind& kind : kinds) {
    for (std::int64_t p = 0; p <= position; ++p) {
      if (kind.window > 0 && p <= position - kind.window) continue;
      digest = mix(digest, p, tokens[static_cast<std::size_t>(p)]);
    }
  }
  return digest;
}

/// Finite, all different for different digests; the largest at digest % kFakeVocab.
inline void fill_logits(std::uint64_t digest, std::span<float> logits) {
  for (std::size_t id = 0; id < logits.size(); ++id) {
    logits[id] = static_cast<float>((digest >> (id % 40)) & 0xffff) / 65536.0f;
  }
  logits[digest % logits.size()] = 2.0f;
}

inline KvKind full_kind() {
  return {"full", 1, 1, 2, 0};
}
inline KvKind sliding_kind(std::int64_t window) {
  return {"sliding", 1, 1, 2, window};
}

/// Values: embedding [2], attn_out.0 [2], attn_out.1 [2], logits [vocab].
inline Model fake_model(std::vector<KvKind> kinds, std::int64_t context,
                        std::int64_t vocab_size = kFakeVocab) {
  Model model;
  model.architecture = "fake";
  model.hidden_size = 2;
  model.num_hidden_layers = 2;
  model.vocab_size = vocab_size;
  model.max_position_embeddings = context;
  Plan& plan = model.plan;
  plan.values = {
      {"embedding", 2}, {"attn_out.0", 2}, {"attn_out.1", 2}, {"logits", vocab_size, Rows::kLogits}};
  EmbedOp embed;
  embed.out = {0};
  plan.ops.push_back({"embed", -1, embed});
  plan.ops.push_back({"add", 0, AddOp{{0}, {0}, {1}}});
  plan.ops.push_back({"add", 1, AddOp{{1}, {0}, {2}}});
  plan.ops.push_back({"select_rows", -1, SelectRowsOp{{2}, {3}}});
  plan.kv_kinds = std::move(kinds);
  plan.logits = {3};
  plan.vocab_size = vocab_size;
  return model;
}

/// What a fake executable does out of the ordinary; owned by the FakeBackend, may be changed between steps.
struct FakeScript {
  /// Logits of a row, where they are not the digest's.
  std::function<void(std::int64_t position, std::uint64_t digest, std::span<float> logits)> logits;
  /// This value turns into `bad` at this position (and so do the logits of the step).
  struct Poison {
    int value;
    std::int64_t position;
    float bad;
  };
  std::optional<Poison> poison;
  std::function<void(const StepState& step)> on_run;        // before anything else
  std::function<void(const StepState& step)> on_operation;  // for each
  std::int64_t runs = 0;
  std::int64_t rows = 0;
};

class FakeExecutable : public Executable {
 public:
  FakeExecutable(const Plan& plan, const CompileOptions& options, FakeScript& script)
      : plan_(plan), options_(options), script_(script) {
    logits_.reserve(static_cast<std::size_t>(options.max_logit_rows * plan.vocab_size));
    values_.resize(static_cast<std::size_t>(options.max_tokens * plan.vocab_size));
  }

  void run(const StepState& step, const Observer* observer) override {
    for (std::size_t op = 0; op < plan_.ops.size(); ++op)
      if (script_.on_operation) script_.on_operation(step);
    finish(step, observer);
  }
  bool run_part(const StepState& step, Pause pause, const Observer* observer) override {
    while (paused_op_ < plan_.ops.size()) {
      if (script_.on_operation) script_.on_operation(step);
      if (++paused_op_ < plan_.ops.size() && pause(paused_op_)) return false;
    }
    paused_op_ = 0;
    finish(step, observer);
    return true;
  }
  void abandon() override { paused_op_ = 0; }
  std::span<const float> logits() const override { return logits_; }

 private:
  static std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

  void finish(const StepState& step, const Observer* observer) {
    if (script_.on_run) script_.on_run(step);
    ++script_.runs;
    script_.rows += step.tokens();
    ASSERT_LE(step.tokens(), paused_op_ > 0 ? options_.rows_beside : options_.max_tokens);
    ASSERT_LE(static_cast<std::int64_t>(step.logit_rows.size()), options_.max_logit_rows);
    for (std::int64_t row = 0; row < step.tokens(); ++row) store(step, row);
    logits_.resize(step.logit_rows.size() * static_cast<std::size_t>(plan_.vocab_size));
    for (std::size_t i = 0; i < step.logit_rows.size(); ++i) make_logits(step, i);
    if (observer != nullptr) observe(step, *observer);
  }
  std::byte* slot(const StepState& step, std::int64_t row, std::size_t kind, std::int64_t position) {
    const SequenceBlocks& sequence = step.sequences[at(step.sequence[at(row)])];
    std::byte* block = sequence.blocks[kind][at(position / kKvBlockPositions)];
    EXPECT_NE(block, nullptr) << "position " << position << " of kind " << kind;
    return block + position % kKvBlockPositions * static_cast<std::int64_t>(sizeof(TokenId));
  }

  void store(const StepState& step, std::int64_t row) {
    for (std::size_t kind = 0; kind < plan_.kv_kinds.size(); ++kind) {
      std::memcpy(slot(step, row, kind, step.positions[at(row)]), &step.token_ids[at(row)], sizeof(TokenId));
    }
  }

  void make_logits(const StepState& step, std::size_t index) {
    const std::int64_t row = step.logit_rows[index];
    const std::int64_t position = step.positions[at(row)];
    std::uint64_t digest = 0;
    for (std::size_t kind = 0; kind < plan_.kv_kinds.size(); ++kind) {
      const std::int64_t window = plan_.kv_kinds[kind].window;
      for (std::int64_t p = window > 0 ? std::max<std::int64_t>(0, position - window + 1) : 0; p <= position;
           ++p) {
        TokenId token;
        std::memcpy(&token, slot(step, row, kind, p), sizeof(TokenId));
        digest = mix(digest, p, token);
      }
    }
    const std::span out = std::span(logits_).subspan(index * at(plan_.vocab_size), at(plan_.vocab_size));
    fill_logits(digest, out);
    if (script_.logits) script_.logits(position, digest, out);
    if (script_.poison) out[0] = script_.poison->bad;
  }

  void observe(const StepState& step, const Observer& observer) {
    for (const Op& op : plan_.ops) {
      for (const ValueId id : outputs_of(op)) {
        const Value& value = plan_.value(id);
        const auto rows =
            value.rows == Rows::kLogits ? static_cast<std::int64_t>(step.logit_rows.size()) : step.tokens();
        std::fill(values_.begin(), values_.end(), 1.0f);
        for (std::int64_t row = 0; row < rows && script_.poison && id.index >= script_.poison->value; ++row) {
          const std::int32_t token_row =
              value.rows == Rows::kLogits ? step.logit_rows[at(row)] : static_cast<std::int32_t>(row);
          if (step.positions[at(token_row)] == script_.poison->position) {
            values_[at(row * value.width)] = script_.poison->bad;
          }
        }
        observer(op, id, values_.data(), rows);
      }
    }
  }

  const Plan& plan_;
  CompileOptions options_;
  FakeScript& script_;
  std::vector<float> logits_, values_;
  std::size_t paused_op_ = 0;
};

class FakeBackend : public Backend {
 public:
  std::string name() const override { return "fake"; }
  Result<std::unique_ptr<Executable>> compile(const Plan& plan, const CompileOptions& options) override {
    if (!compile_error.empty()) return Error(compile_error);
    return std::unique_ptr<Executable>(new FakeExecutable(plan, options, script));
  }
  Result<KvMemory> allocate_kv(std::int64_t bytes) override {
    ++slabs;
    if (kv_bytes_left < bytes) return error("cannot allocate {} bytes", bytes);
    kv_bytes_left -= bytes;
    auto memory = std::make_shared<std::vector<std::byte>>(static_cast<std::size_t>(bytes));
    return KvMemory{memory->data(), memory};
  }
  std::vector<const TensorView*> copied_weights(const Plan&) const override { return {}; }
  std::int64_t working_memory(const Plan&, const CompileOptions& options) const override {
    return options.max_tokens * 1000;
  }
  Result<std::int64_t> barriers_per_token(const Plan&, const CompileOptions&) override { return 0; }

  FakeScript script;
  std::string compile_error;
  std::int64_t kv_bytes_left = std::int64_t{1} << 40;
  std::int64_t slabs = 0;
};

/// Reproducible token ids in 0..vocab-1.
inline std::vector<TokenId> some_tokens(std::int64_t count, std::uint64_t seed,
                                        std::int64_t vocab = kFakeVocab) {
  std::vector<TokenId> tokens;
  std::uint64_t state = seed;
  for (std::int64_t i = 0; i < count; ++i) {
    state = mix(state + 1, i, 0);
    tokens.push_back(static_cast<TokenId>(state % static_cast<std::uint64_t>(vocab)));
  }
  return tokens;
}

}  // namespace eider::test
