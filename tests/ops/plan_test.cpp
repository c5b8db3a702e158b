#include "ops/plan.h"

#include <gtest/gtest.h>

#include "ops/recorder.h"

namespace eider {
namespace {

TensorView weight(Shape shape, Format format = Format::kF32) {
  return {"w", format, shape, nullptr};
}

/// Two layers of norm, attention and a feed-forward block, and a head.
Plan small_plan(std::int64_t hidden_size) {
  Recorder r;
  const int kind = r.kv_kind({.name = "full", .num_key_value_heads = 1, .head_dim = 4});
  ValueId x = r.embed(weight({11, hidden_size}));
  const ValueId table = r.rope_table({{1.0, 0.1}, 1.0});
  for (int layer = 0; layer < 2; ++layer) {
    r.set_layer(layer);
    const ValueId a = r.rms_norm(x, weight({hidden_size}), 1e-5f);
    const auto [q, k, v] = r.linear<3>(
        a,
        {Recorder::Linear{weight({8, hidden_size})}, {weight({4, hidden_size})}, {weight({4, hidden_size})}});
    const KvSlot slot = r.kv_slot(kind);
    r.store_kv(r.rope(k, table, 1), v, slot);
    x = r.add(x, r.linear(r.attention(r.rope(q, table, 2), slot, 2, 0.5f), {weight({hidden_size, 8})}));
    const auto [gate, up] =
        r.linear<2>(x, {Recorder::Linear{weight({24, hidden_size})}, {weight({24, hidden_size})}});
    x = r.name(
        r.add(x, r.linear(r.gated_activation(Activation::kSilu, gate, up), {weight({hidden_size, 24})})),
        "layer");
  }
  r.set_layer(-1);
  return std::move(r).finish(r.linear(r.select_rows(x), {weight({11, hidden_size})}));
}

TEST(Plan, NamesFollowTheLayer) {
  const Plan plan = small_plan(8);
  EXPECT_EQ(plan.vocab_size, 11);
  EXPECT_EQ(plan.kv_kinds[0].layers, 2);
  int named = 0;
  for (const Value& value : plan.values) named += value.name == "layer.0" || value.name == "layer.1";
  EXPECT_EQ(named, 2);
  EXPECT_EQ(describe(plan.ops[0]), "embed");
  EXPECT_EQ(describe(plan.ops[2]), "rms_norm, layer 0");
}

TEST(Plan, LiveValuesNeverShareStorage) {
  const Plan plan = small_plan(8);
  constexpr std::int64_t kTokens = 5, kLogitRows = 2;
  const ValueStorage storage = assign_storage(plan, kTokens, kLogitRows);
  const auto end_of = [&](ValueId id) {
    const Value& value = plan.value(id);
    const std::int64_t rows = value.rows == Rows::kTokens ? kTokens : kLogitRows;
    return storage.offset[static_cast<std::size_t>(id.index)] + rows * value.width * 4;
  };
  // Replay: the bytes of every value that is read must still belong to it.
  std::vector<int> owner(static_cast<std::size_t>(storage.bytes), -1);
  const auto expect_owned = [&](ValueId id) {
    for (std::int64_t at = storage.offset[static_cast<std::size_t>(id.index)]; at < end_of(id); ++at)
      ASSERT_EQ(owner[static_cast<std::size_t>(at)], id.index) << plan.value(id).name;
  };
  for (const Op& op : plan.ops) {
    for (const ValueId id : outputs_of(op)) {
      ASSERT_EQ(storage.offset[static_cast<std::size_t>(id.index)] % 64, 0);
      ASSERT_LE(end_of(id), storage.bytes);
      for (std::int64_t at = storage.offset[static_cast<std::size_t>(id.index)]; at < end_of(id); ++at)
        owner[static_cast<std::size_t>(at)] = id.index;
    }
    // After the outputs are written, so that an output on top of an input of the same operation is caught
    // too.
    for (const ValueId id : inputs_of(op)) expect_owned(id);
  }
  expect_owned(plan.logits);
}

TEST(Plan, StorageDoesNotGrowWithLayers) {
  // Two layers take no more than every value of one layer side by side.
  const ValueStorage storage = assign_storage(small_plan(8), 64, 1);
  std::int64_t all = 0;
  for (const Value& value : small_plan(8).values) all += value.width * 4 * 64;
  EXPECT_LT(storage.bytes, all / 2);
}

TEST(Plan, BytesPerTokenCountsWhatATokenReads) {
  Recorder r;
  const ValueId x = r.embed(weight({1000, 32}, Format::kQ8_0));  // one row: 34 bytes
  const ValueId scores = r.linear(x, {weight({8, 32})});         // 8 * 32 * 4
  const MoeFfnOp::Expert expert{weight({64, 32}, Format::kQ8_0), weight({64, 32}, Format::kQ8_0),
                                weight({32, 64}, Format::kQ8_0)};
  const ValueId y = r.moe_ffn(x, r.moe_route(scores, 2, true), Activation::kSilu,
                              std::vector<MoeFfnOp::Expert>(8, expert));  // 2 of 8: 2 * 3 * 64 * 34
  const Plan plan = std::move(r).finish(r.linear(r.select_rows(y), {weight({1000, 32}, Format::kF16)}));
  EXPECT_EQ(bytes_per_token(plan), 34 + 8 * 32 * 4 + 2 * 3 * 64 * 34 + 1000 * 32 * 2);
}

}  // namespace
}  // namespace eider
