#include "bench/attention_bench.h"

#include <chrono>
#include <cmath>
#include <cstring>
#include <numeric>

#include "base/thread_pool.h"
#include "ops/recorder.h"
#include "weights/random_weights.h"

namespace eider::bench {
namespace {

/// One layer's attention, ready to be run again and again.
class AttentionLayer {
 public:
  static Result<std::unique_ptr<AttentionLayer>> create(const AttentionSetup& setup, const AttentionCase& c) {
    auto layer = std::unique_ptr<AttentionLayer>(new AttentionLayer(c));
    EIDER_TRY_STATUS(layer->record(setup.backend));
    EIDER_TRY_STATUS(layer->lay_out(setup.memory));
    return layer;
  }

  /// Seconds that attention alone takes in `steps` steps: not the look-up of the queries.
  double run(std::int64_t steps) {
    using Clock = std::chrono::steady_clock;
    Clock::duration total{};
    Clock::time_point queries_ready;
    const auto look = [&](const Op&, ValueId value, const void*, std::int64_t) {
      if (value == query_) queries_ready = Clock::now();
      if (value == out_) total += Clock::now() - queries_ready;
    };
    const Observer observer(look);
    for (std::int64_t step = 0; step < steps; ++step) {
      executable_->run({ids_, positions_, sequence_, {&copies_[next_copy_], 1}, {}}, &observer);
      next_copy_ = (next_copy_ + 1) % copies_.size();
    }
    return std::chrono::duration<double>(total).count();
  }

 private:
  explicit AttentionLayer(const AttentionCase& c) : case_(c) {}

  Status record(Backend& backend) {
    const auto [heads, kv_heads, head_dim] = case_.shape;
    const std::int64_t width = heads * head_dim;
    queries_.resize(static_cast<std::size_t>(case_.tokens * width));
    auto* queries = reinterpret_cast<std::byte*>(queries_.data());
    ThreadPool one(1);
    fill_random_weights(Format::kF32, 1, case_.tokens * width, queries, one);
    Recorder recorder;
    const KvSlot slot = recorder.kv_slot(recorder.kv_kind({"full", 0, kv_heads, head_dim, 0}));
    query_ = recorder.embed({"queries", Format::kF32, {case_.tokens, width}, queries});
    out_ = recorder.attention(query_, slot, heads, 1 / std::sqrt(static_cast<float>(head_dim)));
    plan_ = std::move(recorder).finish(recorder.select_rows(out_));
    EIDER_TRY(executable_, backend.compile(plan_, {.max_tokens = case_.tokens,
                                                   .max_logit_rows = 1,
                                                   .kv_type = case_.kv_type,
                                                   .max_positions = case_.position + case_.tokens}));
    ids_.resize(static_cast<std::size_t>(case_.tokens));
    std::iota(ids_.begin(), ids_.end(), 0);
    positions_.resize(ids_.size());
    std::iota(positions_.begin(), positions_.end(), static_cast<std::int32_t>(case_.position));
    sequence_.resize(ids_.size());
    return {};
  }

  /// Fills the memory with blocks and cuts it into contexts.
  Status lay_out(const PagedMemory& memory) {
    const std::int64_t block_bytes = kv_block_bytes(plan_.kv_kinds.front(), case_.kv_type);
    const std::int64_t positions = case_.position + case_.tokens;
    const std::int64_t context_blocks = (positions + kKvBlockPositions - 1) / kKvBlockPositions;
    const std::int64_t blocks = static_cast<std::int64_t>(memory.size()) / block_bytes;
    const std::int64_t copies = blocks / context_blocks;
    if (copies == 0)
      return error("attention over {} positions takes {} bytes, more than the {} that cold measurements walk",
                   positions, context_blocks * block_bytes, memory.size());
    const Format format = case_.kv_type == KvType::kF16 ? Format::kF16 : Format::kF32;
    ThreadPool one(1);
    fill_random_weights(format, 2, block_bytes / kv_type_bytes(case_.kv_type), memory.data(), one);
    for (std::int64_t block = 0; block < copies * context_blocks; ++block) {
      std::byte* data = memory.data() + block * block_bytes;
      if (block > 0) std::memcpy(data, memory.data(), static_cast<std::size_t>(block_bytes));
      tables_.push_back(data);
    }
    for (std::int64_t copy = 0; copy < copies; ++copy)
      copies_.emplace_back().blocks[0] = tables_.data() + copy * context_blocks;
    return {};
  }

  AttentionCase case_;
  std::vector<float> queries_;
  Plan plan_;
  ValueId query_, out_;
  std::unique_ptr<Executable> executable_;
  std::vector<TokenId> ids_;
  std::vector<std::int32_t> positions_, sequence_;
  std::vector<std::byte*> tables_;
  std::vector<SequenceBlocks> copies_;
  std::size_t next_copy_ = 0;
};

Result<AttentionResult> measure(const AttentionSetup& setup, const AttentionCase& attention, int samples,
                                const Roof& roof, const TimeLimit& limit) {
  EIDER_TRY(const std::unique_ptr<AttentionLayer> layer, AttentionLayer::create(setup, attention));
  AttentionResult result{.attention = attention, .isa = setup.isa, .threads = setup.threads, .roof = roof};
  layer->run(1);
  const auto steps = static_cast<std::int64_t>(std::ceil(kSampleSeconds / layer->run(1)));
  for (int i = 0; i == 0 || (i < samples && !limit.over()); ++i)
    result.layers_s.add(static_cast<double>(steps) / layer->run(steps));
  result.fraction_of_roof = share_of_roof(attention.work(), 1 / result.layers_s.median(), roof).nearest();
  return result;
}

}  // namespace

Work AttentionCase::work() const {
  const auto [heads, kv_heads, head_dim] = shape;
  const std::int64_t keys = tokens * position + tokens * (tokens + 1) / 2;  // that the tokens see, one by one
  return {
      .bytes = static_cast<double>((position + tokens) * kv_heads * head_dim * 2 * kv_type_bytes(kv_type)),
      .fp32_ops = 4.0 * static_cast<double>(heads * head_dim) * static_cast<double>(keys)};
}

double AttentionResult::gb_s() const {
  return attention.work().bytes * layers_s.median() / 1e9;
}
double AttentionResult::gop_s() const {
  return attention.work().fp32_ops * layers_s.median() / 1e9;
}

Result<std::vector<AttentionResult>> measure_attention(const AttentionSetup& setup,
                                                       const std::vector<AttentionCase>& cases, int samples,
                                                       const std::function<Roof()>& read_roof,
                                                       const Progress& progress, const TimeLimit& limit) {
  std::vector<AttentionResult> results;
  for (const AttentionCase& attention : cases) {
    if (limit.over()) break;
    EIDER_TRY(AttentionResult result, measure(setup, attention, samples, read_roof(), limit));
    results.push_back(std::move(result));
    if (!progress(static_cast<std::int64_t>(results.size()), static_cast<std::int64_t>(cases.size())))
      return error("interrupted");
  }
  return results;
}

}  // namespace eider::bench
