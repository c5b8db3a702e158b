// Operations against vectors computed by transformers and torch: tests/data/golden/ops (tolerances as its
// README gives them: 1e-5 relative or 1e-6 absolute).
#include <gtest/gtest.h>

#include <cstring>

#include "ops/rope.h"
#include "tests/support/plan_run.h"
#include "weights/safetensors.h"

namespace eider::test {
namespace {

class GoldenOps : public testing::Test {
 protected:
  GoldenOps()
      : file_(std::move(SafetensorsFile::open(EIDER_TEST_DATA "/golden/ops/ops.safetensors")).value()) {}

  template <class T = float>
  std::vector<T> read(const std::string& name) const {
    const SafetensorsFile::Entry* entry = file_.find(name);
    EIDER_CHECK(entry != nullptr);
    std::vector<T> values(entry->bytes.size() / sizeof(T));
    std::memcpy(values.data(), entry->bytes.data(), entry->bytes.size());
    return values;
  }
  static std::vector<float> run(TestPlan& test, ValueId out, const RowPlaces& places) {
    const Plan plan = test.finish(out);
    return floats_of(run_plan(plan, places, {.threads = 2})[static_cast<std::size_t>(out.index)]);
  }
  static void expect_close(const std::vector<float>& ours, const std::vector<float>& golden,
                           double absolute = 1e-6) {
    ASSERT_EQ(ours.size(), golden.size());
    for (std::size_t i = 0; i < ours.size(); ++i)
      ASSERT_NEAR(ours[i], golden[i], std::max(absolute, 1e-5 * std::abs(golden[i]))) << "element " << i;
  }
  /// [heads, tokens, dim] to [tokens, heads, dim], with zeros for the first `skipped` tokens.
  static std::vector<float> by_token(const std::vector<float>& x, std::size_t heads, std::size_t dim,
                                     std::size_t skipped) {
    const std::size_t tokens = x.size() / heads / dim;
    std::vector<float> result((skipped + tokens) * heads * dim);
    for (std::size_t head = 0; head < heads; ++head)
      for (std::size_t token = 0; token < tokens; ++token)
        std::copy_n(x.begin() + static_cast<std::ptrdiff_t>((head * tokens + token) * dim), dim,
                    result.begin() + static_cast<std::ptrdiff_t>(((skipped + token) * heads + head) * dim));
    return result;
  }

  SafetensorsFile file_;
};

TEST_F(GoldenOps, RmsNorm) {
  const std::vector<float> weight = read("rmsnorm.weight");
  std::vector<float> one_plus = weight;
  for (float& w : one_plus) w = 1 + w;
  const auto check = [&](const char* in, const std::vector<float>& w, float eps, const char* golden) {
    SCOPED_TRACE(golden);
    const std::vector<float> x = read(in);
    TestPlan test;
    const ValueId out = test.recorder.rms_norm(test.input(x, 96), test.vector(w), eps);
    expect_close(run(test, out, places_in_order(static_cast<std::int64_t>(x.size()) / 96)), read(golden));
  };
  check("rmsnorm.x", weight, 1e-5f, "rmsnorm.y_eps1e-05");
  check("rmsnorm.x", weight, 1e-6f, "rmsnorm.y_eps1e-06");
  check("rmsnorm.x", one_plus, 1e-5f, "rmsnorm.y_one_plus_weight_eps1e-05");
  check("rmsnorm.x", one_plus, 1e-6f, "rmsnorm.y_one_plus_weight_eps1e-06");
  check("rmsnorm.small_x", weight, 1e-5f, "rmsnorm.small_y_eps1e-05");
}

TEST_F(GoldenOps, Activations) {
  const std::vector<float> gate = read("act.gate"), up = read("act.up");
  for (auto [activation, golden] :
       {std::pair{Activation::kSilu, "act.swiglu"}, {Activation::kGeluTanh, "act.geglu_tanh"}}) {
    SCOPED_TRACE(golden);
    TestPlan test;
    const ValueId out = test.recorder.gated_activation(activation, test.input(gate, 48), test.input(up, 48));
    expect_close(run(test, out, places_in_order(5)), read(golden));
  }
}

TEST_F(GoldenOps, Attention) {
  constexpr std::int64_t kHeads = 8, kKvHeads = 2, kDim = 32;
  const std::vector<float> q = by_token(read("attn.q"), kHeads, kDim, 4);  // query i stands at position i + 4
  const std::vector<float> k = by_token(read("attn.k"), kKvHeads, kDim, 0);
  const std::vector<float> v = by_token(read("attn.v"), kKvHeads, kDim, 0);
  const auto check = [&](std::int64_t window, float softcap, const char* golden) {
    SCOPED_TRACE(golden);
    TestPlan test;
    const KvSlot slot = test.recorder.kv_slot(test.recorder.kv_kind({"kind", 0, kKvHeads, kDim, window}));
    test.recorder.store_kv(test.input(k, kKvHeads * kDim), test.input(v, kKvHeads * kDim), slot);
    const ValueId out = test.recorder.attention(test.input(q, kHeads * kDim), slot, kHeads,
                                                static_cast<float>(1 / std::sqrt(32.0)), softcap);
    std::vector<float> y = run(test, out, places_in_order(10));
    y.erase(y.begin(), y.begin() + 4 * kHeads * kDim);
    std::vector<float> expected = by_token(read(golden), kHeads, kDim, 0);
    expect_close(y, expected, 3e-6);
  };
  check(0, 0, "attn.causal");
  check(4, 0, "attn.window4");
  check(0, 2, "attn.causal_softcap2");
}

TEST_F(GoldenOps, SoftmaxRouter) {
  const std::vector<float> logits = read("router.logits");
  for (auto [normalize, golden] :
       {std::pair{true, "router.softmax.weight_normalised"}, {false, "router.softmax.weight_raw"}}) {
    SCOPED_TRACE(golden);
    TestPlan test;
    const auto [experts, weights] = test.recorder.moe_route(test.input(logits, 16), 4, normalize);
    const Plan plan = test.finish(weights);
    const ValueBits values = run_plan(plan, places_in_order(12), {.threads = 2});
    const auto& picks = values[static_cast<std::size_t>(experts.index)];
    EXPECT_EQ(std::vector<std::int32_t>(picks.begin(), picks.end()),
              read<std::int32_t>("router.softmax.idx"));
    expect_close(floats_of(values[static_cast<std::size_t>(weights.index)]), read(golden));
  }
}

TEST_F(GoldenOps, Rope) {
  const std::vector<float> x = read("rope.apply.x");  // [positions, 3 heads, 32]
  RowPlaces places;
  for (std::int64_t position : read<std::int64_t>("rope.positions")) {
    places.positions.push_back(static_cast<std::int32_t>(position));
    places.sequence.push_back(0);
  }
  TestPlan test;
  const ValueId table = test.recorder.rope_table(rope_default(32, 10000));
  const ValueId out = test.recorder.rope(test.input(x, 3 * 32), table, 3);
  const std::vector<float> y = run(test, out, places), golden = read("rope.apply.half_split");
  ASSERT_EQ(y.size(), golden.size());
  for (std::size_t i = 0; i < y.size(); ++i) {
    // The reference rounds position * frequency to float32, we do not.
    const std::int32_t position = places.positions[i / 96];
    ASSERT_NEAR(y[i], golden[i],
                (position <= 63     ? 1e-5
                 : position <= 4095 ? 1e-3
                                    : 1e-2) *
                    5)
        << "element " << i;
  }
}

}  // namespace
}  // namespace eider::test
