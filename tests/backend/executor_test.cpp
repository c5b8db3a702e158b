// The executor: whatever must not change a bit (threads, builds of the kernels, steps, what shares a step) on
// a plan that holds every operation; the observer; memory.
#include <gtest/gtest.h>

#include <malloc.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <new>

#include "ops/rope.h"
#include "tests/support/plan_run.h"
#include "tests/support/random_floats.h"

namespace {
std::atomic<std::int64_t> allocations{0};
}

// Counts every allocation of this program that goes through operator new. Not inlined, or GCC would see a
// delete of what malloc gave.
[[gnu::noinline]] void* operator new(std::size_t size) {
  ++allocations;
  if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}

namespace eider::test {
namespace {

constexpr std::int64_t kWeightRows = 150;

/// Two layers, one of them with a window, a dense and a mixture-of-experts feed-forward, weights of many
/// formats.
class EveryOperation {
 public:
  EveryOperation() {
    constexpr std::int64_t kHidden = 256, kHeads = 8, kKvHeads = 2, kHeadDim = 32, kExperts = 6;
    Recorder& r = test_.recorder;
    const auto weight = [&](Format format, std::int64_t rows, std::int64_t columns) {
      const float scale = 1.0f / std::sqrt(static_cast<float>(columns));
      return test_.weight(format, random_.normal(rows * columns, scale), columns);
    };
    const TensorView norm = test_.vector(random_.normal(kHidden), Format::kBF16);
    const TensorView head_norm = test_.vector(random_.normal(kHeadDim));

    ValueId x = r.embed(weight(Format::kQ5_0, kWeightRows, kHidden), 16.0f);
    const ValueId table = r.rope_table(rope_default(kHeadDim, 10000));
    const int kinds[] = {r.kv_kind({"full", 0, kKvHeads, kHeadDim, 0}),
                         r.kv_kind({"sliding", 0, kKvHeads, kHeadDim, 20})};
    for (int layer = 0; layer < 2; ++layer) {
      r.set_layer(layer);
      const ValueId h = r.rms_norm(x, norm, 1e-5f);
      auto [q, k, v] = r.linear<3>(h, {{{weight(Format::kQ4_K, kHeads * kHeadDim, kHidden),
                                         test_.vector(random_.normal(kHeads * kHeadDim))},
                                        {weight(Format::kQ4_1, kKvHeads * kHeadDim, kHidden), {}},
                                        {weight(Format::kF16, kKvHeads * kHeadDim, kHidden), {}}}});
      q = r.rope(r.rms_norm(q, head_norm, 1e-6f, kHeads), table, kHeads);
      k = r.rope(k, table, kKvHeads);
      const KvSlot slot = r.kv_slot(kinds[layer]);
      r.store_kv(k, v, slot);
      const ValueId attended = r.attention(q, slot, kHeads, 0.2f, layer == 0 ? 0.0f : 30.0f);
      x = r.add(x, r.linear(attended, {weight(Format::kQ6_K, kHidden, kHeads * kHeadDim), {}}));
      const ValueId g = r.rms_norm(x, norm, 1e-5f);
      x = r.add(x, layer == 0 ? dense(g, weight) : experts(g, weight, kExperts));
    }
    r.set_layer(-1);
    const ValueId hidden = r.rms_norm(r.select_rows(x), norm, 1e-5f);
    plan = std::move(r).finish(r.soft_cap(r.linear(hidden, {weight(Format::kQ8_0, 300, kHidden), {}}), 20));
  }

  Plan plan;

 private:
  template <class Weight>
  ValueId dense(ValueId in, const Weight& weight) {
    const auto [gate, up] = test_.recorder.linear<2>(
        in, {{{weight(Format::kQ5_K, 512, 256), {}}, {weight(Format::kBF16, 512, 256), {}}}});
    return test_.recorder.linear(test_.recorder.gated_activation(Activation::kGeluTanh, gate, up),
                                 {weight(Format::kQ5_1, 256, 512), {}});
  }
  template <class Weight>
  ValueId experts(ValueId in, const Weight& weight, std::int64_t count) {
    const ValueId scores = test_.recorder.linear(in, {weight(Format::kF32, count, 256), {}});
    std::vector<MoeFfnOp::Expert> all;
    for (std::int64_t i = 0; i < count; ++i)
      all.push_back(
          {weight(Format::kQ4_0, 96, 256), weight(Format::kQ8_0, 96, 256), weight(Format::kQ8_0, 256, 96)});
    return test_.recorder.moe_ffn(in, test_.recorder.moe_route(scores, 2, true), Activation::kSilu,
                                  std::move(all));
  }

  TestPlan test_;
  RandomFloats random_{11};
};

TEST(Executor, ThreadsBuildsAndStepsChangeNoBit) {
  const EveryOperation every;
  const RowPlaces places = places_in_order(kWeightRows);
  for (KvType kv_type : {KvType::kF16, KvType::kF32}) {
    const ValueBits expected = run_plan(every.plan, places, {.threads = 1}, kv_type);
    const std::vector<std::int64_t> one_by_one(kWeightRows, 1), pieces = {7, 32, 1, 100, 10};
    for (const RunManner& manner : {RunManner{.threads = 2},
                                    {.threads = 3},
                                    {.threads = 5},
                                    {.threads = 16},
                                    {.threads = 2, .steps = one_by_one},
                                    {.threads = 3, .steps = pieces},
                                    {.threads = 16, .steps = pieces},
                                    {.threads = 16, .steps = one_by_one}})
      EXPECT_TRUE(same_values(every.plan, expected, run_plan(every.plan, places, manner, kv_type)))
          << manner.threads << " threads, " << manner.steps.size() << " steps";
    for (const std::string& backend : other_backends())
      for (const RunManner& manner :
           {RunManner{.threads = 2, .backend = backend}, {.threads = 5, .backend = backend, .steps = pieces}})
        EXPECT_TRUE(same_values(every.plan, expected, run_plan(every.plan, places, manner, kv_type)))
            << backend << ", " << manner.threads << " threads";
  }
}

// Three sequences of 50 rows: all in one step, or each step with one row of each.
TEST(Executor, WhatSharesAStepChangesNoBit) {
  const EveryOperation every;
  RowPlaces places;
  for (std::int32_t row = 0; row < kWeightRows; ++row) {
    places.positions.push_back(row / 3);
    places.sequence.push_back(row % 3);
  }
  const ValueBits expected = run_plan(every.plan, places, {.threads = 2});
  EXPECT_TRUE(
      same_values(every.plan, expected,
                  run_plan(every.plan, places, {.threads = 3, .steps = std::vector<std::int64_t>(50, 3)})));
  EXPECT_TRUE(same_values(
      every.plan, expected,
      run_plan(every.plan, places, {.threads = 2, .steps = std::vector<std::int64_t>(kWeightRows, 1)})));
}

/// Executables ready for rows 0..tokens-1 of one sequence.
struct Ready {
  Ready(const Plan& plan, std::int64_t tokens, int threads)
      : pool(threads),
        backend(make_reference_backend(pool, detect_machine())),
        executable(std::move(backend->compile(plan, {tokens, tokens, KvType::kF16, tokens})).value()),
        places(places_in_order(tokens)),
        kv(plan, KvType::kF16, places) {}

  StepState state(const std::vector<std::int32_t>& wanted) const {
    return {places.positions, places.positions, places.sequence, kv.sequences(),
            wanted};  // ids are positions
  }

  ThreadPool pool;
  std::unique_ptr<Backend> backend;
  std::unique_ptr<Executable> executable;
  RowPlaces places;
  TestKv kv;
};

TEST(Executor, PausesAndStepsMeanwhileChangeNoBit) {
  const EveryOperation every;
  std::vector<std::string> backends = other_backends();
  backends.push_back("reference");
  for (const std::string& name : backends) {
    ThreadPool pool(2);
    const auto backend = make_backend(name, pool);
    const CompileOptions options{
        .max_tokens = 40, .max_logit_rows = 3, .max_positions = 40, .rows_beside = 3};
    const auto executable = std::move(backend->compile(every.plan, options)).value();
    const RowPlaces places = places_in_order(40), few = places_in_order(3);
    const TestKv kv(every.plan, options.kv_type, places), other_kv(every.plan, options.kv_type, few);
    const std::vector<std::int32_t> wanted = {7, 39}, all = {0, 1, 2};
    const StepState step{places.positions, places.positions, places.sequence, kv.sequences(), wanted};
    const StepState beside{few.positions, few.positions, few.sequence, other_kv.sequences(), all};
    const auto logits = [&] {
      const auto values = executable->logits();
      return std::vector<float>(values.begin(), values.end());
    };
    executable->run(step);
    const std::vector<float> expected = logits();
    executable->run(beside);
    const std::vector<float> expected_beside = logits();

    std::size_t parts = 1, last = 0;
    const auto pause = [&](std::size_t op) {
      EXPECT_EQ(op, last + 1);
      last = op;
      return true;
    };
    while (!executable->run_part(step, pause)) {
      ++parts;
      executable->run(beside);
      ASSERT_EQ(logits(), expected_beside) << name << ", before operation " << last;
    }
    EXPECT_EQ(parts, every.plan.ops.size());
    EXPECT_EQ(logits(), expected) << name;

    last = 0;
    EXPECT_FALSE(executable->run_part(step, pause));
    executable->abandon();
    executable->run(step);
    EXPECT_EQ(logits(), expected) << name;
  }
}

TEST(Executor, AStepAllocatesNothing) {
  const EveryOperation every;
  const std::vector<std::int32_t> wanted = {0, 3};
  for (int threads : {1, 3}) {
    const Ready ready(every.plan, 40, threads);
    const StepState state = ready.state(wanted);
    const std::int64_t before = allocations;
    ready.executable->run(state);
    ready.executable->run(state);
    EXPECT_EQ(allocations - before, 0);
  }
}

TEST(Executor, BarriersAreCountedAsTheyHappen) {
  const EveryOperation every;
  const std::vector<std::int32_t> wanted = {0};
  for (int threads : {1, 2, 5}) {
    Ready ready(every.plan, 1, threads);
    const std::uint32_t before = ready.pool.barriers_passed();
    ready.executable->run(ready.state(wanted));
    const auto counted = ready.backend->barriers_per_token(every.plan, {1, 1, KvType::kF16, 1});
    ASSERT_TRUE(counted.ok());
    EXPECT_EQ(ready.pool.barriers_passed() - before, *counted);
  }
}

TEST(Executor, ObserverSeesEveryValueInOrderAndChangesNothing) {
  const EveryOperation every;
  const std::vector<std::int32_t> wanted = {5};
  const Ready ready(every.plan, 20, 2);
  const StepState state = ready.state(wanted);
  ready.executable->run(state);
  const auto copy = [&] {
    const auto logits = ready.executable->logits();
    return std::vector<float>(logits.begin(), logits.end());
  };
  const std::vector<float> unobserved = copy();

  std::vector<int> seen;
  const auto look = [&](const Op& op, ValueId value, const void* data, std::int64_t rows) {
    seen.push_back(value.index);
    EXPECT_NE(data, nullptr);
    EXPECT_EQ(rows, every.plan.value(value).rows == Rows::kTokens ? 20 : 1) << describe(op);
  };
  const Observer observer(look);
  ready.executable->run(state, &observer);
  std::vector<int> all(every.plan.values.size());
  std::iota(all.begin(), all.end(), 0);
  EXPECT_EQ(seen, all);  // values are numbered as they are recorded
  EXPECT_EQ(copy(), unobserved);
}

/// Bytes on the heap now, those mapped by themselves included.
std::int64_t allocated_bytes() {
  std::ifstream statm("/proc/self/statm");
  std::int64_t pages = 0;  // of everything mapped: the heap's arena, its large blocks, and large buffers
  statm >> pages;
  const struct mallinfo2 info = mallinfo2();
  return pages * sysconf(_SC_PAGESIZE) - static_cast<std::int64_t>(info.arena) +
         static_cast<std::int64_t>(info.uordblks);
}

TEST(Executor, WorkingMemoryIsWhatCompilingTakes) {
  if (mallinfo2().arena == 0) GTEST_SKIP() << "this build's malloc does not say what it has given out";
  const EveryOperation every;
  for (int threads : {1, 16})
    for (std::int64_t tokens : {1, 512}) {
      ThreadPool pool(threads);
      const auto backend = make_reference_backend(pool, detect_machine());
      CompileOptions options{tokens, 8, KvType::kF16, 1000};
      options.rows_beside = threads == 1 ? 0 : 64;
      const std::int64_t before = allocated_bytes();
      const auto executable = backend->compile(every.plan, options);
      ASSERT_TRUE(executable.ok());
      const auto taken = static_cast<double>(allocated_bytes() - before);
      const auto promised = static_cast<double>(backend->working_memory(every.plan, options));
      // Phases and the heap's own needs come on top, and five buffers that are rounded up to huge pages.
      EXPECT_NEAR(taken, promised, 0.02 * promised + 200e3 + 5 * (2 << 20));
    }
}

TEST(Executor, KvMemoryIsZeroed) {
  ThreadPool pool(1);
  const auto backend = make_reference_backend(pool, detect_machine());
  const auto memory = backend->allocate_kv(1000);
  ASSERT_TRUE(memory.ok());
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(memory->data[i], std::byte{0});
}

}  // namespace
}  // namespace eider::test
