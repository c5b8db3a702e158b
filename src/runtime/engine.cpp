#include "runtime/engine.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

#include "base/check.h"
#include "runtime/prepared_model.h"

namespace eider {
namespace {

bool is_finite(float value) {
  constexpr std::uint32_t kExponent = 0x7f800000u;
  return (std::bit_cast<std::uint32_t>(value) & kExponent) != kExponent;
}

bool all_finite(std::span<const float> values) {
  // A sum's sign is set where all bits of the exponent are. Fixed portions without early exit: they
  // vectorise.
  constexpr std::size_t kPortion = 64;
  const auto sum = [](float value) {
    return (std::bit_cast<std::uint32_t>(value) & 0x7fffffffu) + 0x00800000u;
  };
  std::uint32_t sums = 0;
  for (; values.size() >= kPortion; values = values.subspan(kPortion))
    for (std::size_t i = 0; i < kPortion; ++i) sums |= sum(values[i]);
  for (const float value : values) sums |= sum(value);
  return sums >> 31 == 0;
}

std::int64_t rows_wanted(const Chunk& chunk) {
  switch (chunk.logits) {
    case LogitsWanted::kNone:
      return 0;
    case LogitsWanted::kLast:
      return 1;
    case LogitsWanted::kAll:
      return static_cast<std::int64_t>(chunk.tokens.size());
  }
  check_failed(__FILE__, __LINE__, "a LogitsWanted outside its list");
}

Status check_size(const char* what, std::int64_t value, std::int64_t most) {
  if (value >= 1 && value <= most) return {};
  return error("{} must be between 1 and {}, not {}", what, most, value);
}

}  // namespace

Engine::Engine(Model model, Backend& backend, const EngineOptions& options)
    : model_(std::move(model)),
      options_(options),
      kv_pool_(backend, model_.plan.kv_kinds, options.kv_type, options.kv_limit_bytes) {
  step_.reserve(options_.max_batch_tokens);
  if (options_.rows_beside > 0) paused_.reserve(options_.max_batch_tokens);
}

Result<std::unique_ptr<Engine>> Engine::create(Model model, Backend& backend, const EngineOptions& options,
                                               std::shared_ptr<PreparedModel> prepared) {
  EngineOptions resolved = options;
  if (resolved.context == 0) resolved.context = model.max_position_embeddings;
  constexpr std::int64_t kMaxRows = std::int64_t{1} << 16;
  EIDER_TRY_STATUS(check_size("the context (-c)", resolved.context, kMaxContext));
  EIDER_TRY_STATUS(check_size("the tokens of a step (-ub)", resolved.max_batch_tokens, kMaxRows));
  EIDER_TRY_STATUS(check_size("the logit rows of a step", resolved.max_logit_rows, kMaxRows));

  // The plan must stay where it is once compiled, so the engine comes first.
  std::unique_ptr<Engine> engine(new Engine(std::move(model), backend, resolved));
  CompileOptions compile;
  compile.max_tokens = resolved.max_batch_tokens;
  compile.max_logit_rows = resolved.max_logit_rows;
  compile.kv_type = resolved.kv_type;
  compile.max_positions = resolved.context;
  compile.rows_beside = resolved.rows_beside;
  if (prepared) compile.prepared = prepared->weights();
  engine->prepared_ = std::move(prepared);
  EIDER_TRY(engine->executable_, backend.compile(engine->model_.plan, compile));
  for (const TensorView* copied : backend.copied_weights(engine->model_.plan))
    engine->model_.checkpoint->release(*copied);
  return engine;
}

Status Engine::forward(std::span<const Chunk> chunks, const Observer* observer) {
  EIDER_TRY_STATUS(begin(chunks, is_paused_ ? options_.rows_beside : options_.max_batch_tokens, step_));
  executable_->run(step_.state(), observer);
  return end(chunks, step_);
}

Result<bool> Engine::forward_part(std::span<const Chunk> chunks, Pause pause, const Observer* observer) {
  if (!is_paused_) EIDER_TRY_STATUS(begin(chunks, options_.max_batch_tokens, paused_));
  is_paused_ = !executable_->run_part(paused_.state(), pause, observer);
  if (is_paused_) return false;
  EIDER_TRY_STATUS(end(chunks, paused_));
  return true;
}

void Engine::abandon_part() {
  executable_->abandon();
  is_paused_ = false;
}

// Checks a step, gets its blocks and lists its rows.
Status Engine::begin(std::span<const Chunk> chunks, std::int64_t most_tokens, Step& step) {
  logit_rows_ = 0;
  EIDER_TRY_STATUS(check_chunks(chunks, most_tokens));
  // Blocks that an earlier session got stay with it when a later one fails: its next step uses them.
  for (const Chunk& chunk : chunks) {
    EIDER_TRY_STATUS(chunk.session->reserve(static_cast<std::int64_t>(chunk.tokens.size())));
  }
  step.clear();
  for (const Chunk& chunk : chunks) {
    const auto sequence = static_cast<std::int32_t>(step.sequences.size());
    auto position = static_cast<std::int32_t>(chunk.session->length());
    for (const TokenId id : chunk.tokens) {
      if (chunk.logits == LogitsWanted::kAll)
        step.rows_wanted.push_back(static_cast<std::int32_t>(step.token_ids.size()));
      step.token_ids.push_back(id);
      step.positions.push_back(position++);
      step.sequence.push_back(sequence);
    }
    if (chunk.logits == LogitsWanted::kLast)
      step.rows_wanted.push_back(static_cast<std::int32_t>(step.token_ids.size()) - 1);
    step.sequences.push_back(chunk.session->blocks());
  }
  return {};
}

// Looks at what a step gave, and adds its tokens to the sessions.
Status Engine::end(std::span<const Chunk> chunks, const Step& step) {
  if (prepared_) EIDER_TRY_STATUS(prepared_->status());
  if (!all_finite(executable_->logits())) return describe_non_finite(step);
  for (const Chunk& chunk : chunks) chunk.session->append(chunk.tokens);
  logit_rows_ = static_cast<std::int64_t>(step.rows_wanted.size());
  return {};
}

void Engine::Step::reserve(std::int64_t rows) {
  const auto count = static_cast<std::size_t>(rows);
  token_ids.reserve(count);
  positions.reserve(count);
  sequence.reserve(count);
  rows_wanted.reserve(count);
  sequences.reserve(count);
}

void Engine::Step::clear() {
  token_ids.clear();
  positions.clear();
  sequence.clear();
  rows_wanted.clear();
  sequences.clear();
}

std::span<const float> Engine::logits(std::int64_t index) const {
  EIDER_CHECK(index >= 0 && index < logit_rows_);
  const auto width = static_cast<std::size_t>(model_.vocab_size);
  return executable_->logits().subspan(static_cast<std::size_t>(index) * width, width);
}

Status Engine::prefill(Session& session, std::span<const TokenId> tokens,
                       const std::function<bool(std::int64_t, std::int64_t)>& progress) {
  EIDER_TRY_STATUS(session.check_room(static_cast<std::int64_t>(tokens.size())));
  const auto chunk_tokens = static_cast<std::size_t>(options_.max_batch_tokens);
  for (std::size_t done = 0; done < tokens.size();) {
    const auto next = tokens.subspan(done, std::min(chunk_tokens, tokens.size() - done));
    // Every chunk's last logits are wanted, though only the last chunk's are kept: a value that is not finite
    // is then found in the step that made it, before it lies in the KV cache.
    const Chunk chunk{&session, next, LogitsWanted::kLast};
    EIDER_TRY_STATUS(forward({&chunk, 1}));
    done += next.size();
    if (progress && !progress(static_cast<std::int64_t>(done), static_cast<std::int64_t>(tokens.size())))
      break;
  }
  return {};
}

Status Engine::check_chunks(std::span<const Chunk> chunks, std::int64_t most_tokens) const {
  std::int64_t tokens = 0;
  std::int64_t logit_rows = 0;
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    const Chunk& chunk = chunks[i];
    EIDER_CHECK(!chunk.tokens.empty());
    for (std::size_t j = 0; j < i; ++j) EIDER_CHECK(chunks[j].session != chunk.session);
    for (const TokenId id : chunk.tokens) {
      if (id < 0 || id >= model_.vocab_size) {
        return error("token id {} is outside the model's vocabulary of {}", id, model_.vocab_size);
      }
    }
    tokens += static_cast<std::int64_t>(chunk.tokens.size());
    logit_rows += rows_wanted(chunk);
  }
  if (tokens > most_tokens) {
    return error("a step of {} tokens is more than the {} it was set up for (-ub)", tokens, most_tokens);
  }
  if (logit_rows > options_.max_logit_rows) {
    return error("a step that wants {} rows of logits is more than the {} it was set up for", logit_rows,
                 options_.max_logit_rows);
  }
  return {};
}

// Runs the step again and looks at every value as it is made. The step stores the same keys and values once
// more.
Error Engine::describe_non_finite(const Step& step) {
  std::string first;
  const auto check = [&](const Op& op, ValueId id, const void* data, std::int64_t rows) {
    const Value& value = model_.plan.value(id);
    if (!first.empty() || value.type != ValueType::kFloat32) return;
    const std::span values(static_cast<const float*>(data), static_cast<std::size_t>(rows * value.width));
    const auto bad = std::find_if_not(values.begin(), values.end(), is_finite);
    if (bad == values.end()) return;
    std::int64_t row = (bad - values.begin()) / value.width;
    if (value.rows == Rows::kLogits) row = step.rows_wanted[static_cast<std::size_t>(row)];
    first = fmt::format("the first one is in \"{}\" ({}) at position {}", value.name, describe(op),
                        step.positions[static_cast<std::size_t>(row)]);
  };
  const Observer observer(check);
  executable_->run(step.state(), &observer);
  if (first.empty()) first = "a second run of the step did not show where they come from";
  return error("the model computed values that are not finite numbers: {}; its weights may be damaged",
               first);
}

}  // namespace eider
