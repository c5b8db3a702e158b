// The decode step makes no allocation: this program's operator new counts while a test asks it to.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>
#include <vector>

#include "runtime/engine.h"
#include "runtime/sampler.h"
#include "tests/runtime/fake_backend.h"

namespace {

std::atomic<bool> counting{false};
std::atomic<std::int64_t> allocations{0};

void* counted_allocation(std::size_t bytes) {
  if (counting) ++allocations;
  if (void* memory = std::malloc(bytes > 0 ? bytes : 1)) return memory;
  throw std::bad_alloc();
}

}  // namespace

void* operator new(std::size_t bytes) {
  return counted_allocation(bytes);
}
void* operator new[](std::size_t bytes) {
  return counted_allocation(bytes);
}
// std::stable_sort and others ask in this way.
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return counted_allocation(bytes);
}
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept {
  return counted_allocation(bytes);
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete[](void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::size_t) noexcept {
  std::free(memory);
}

namespace eider {
namespace {

using test::fake_model;
using test::FakeBackend;
using test::full_kind;
using test::kFakeVocab;
using test::sliding_kind;
using test::some_tokens;

TEST(Allocation, TheCounterCounts) {
  allocations = 0;
  counting = true;
  std::vector<int> some(100);
  counting = false;
  EXPECT_EQ(allocations, 1) << some.size();
}

TEST(Allocation, DecodeStepsMakeNone) {
  FakeBackend backend;
  auto engine = Engine::create(fake_model({full_kind(), sliding_kind(100)}, 4096), backend, {});
  ASSERT_TRUE(engine.ok());
  Session session = (*engine)->new_session();
  std::vector<TokenId> tokens = some_tokens(300, 1);
  ASSERT_TRUE((*engine)->prefill(session, tokens).ok());
  session.mark_prompt_end();

  SamplerOptions options;
  options.repeat_penalty = 1.1f;
  options.typical_p = 0.9f;
  options.logit_bias = {{3, 1.0f}};
  auto sampler = Sampler::create(options, kFakeVocab);
  ASSERT_TRUE(sampler.ok());

  // 200 steps cross a block boundary; the four blocks of the pool's first slab for 512 positions are already
  // there.
  allocations = 0;
  counting = true;
  bool ok = true;
  for (int step = 0; step < 200; ++step) {
    const TokenId id = sampler->sample((*engine)->logits(), session.tokens(), session.length());
    const Chunk chunk{&session, {&id, 1}, LogitsWanted::kLast};
    ok = ok && (*engine)->forward({&chunk, 1}).ok();
  }
  counting = false;
  EXPECT_TRUE(ok);
  EXPECT_EQ(session.length(), 500);
  EXPECT_EQ(allocations, 0);
}

TEST(Allocation, ALongDecodeMakesFewAndOnlyForSlabs) {
  FakeBackend backend;
  auto engine = Engine::create(fake_model({full_kind()}, 1 << 15), backend, {});
  ASSERT_TRUE(engine.ok());
  Session session = (*engine)->new_session();
  const std::vector<TokenId> tokens = some_tokens(512, 1);
  std::int64_t steps_that_allocate = 0;
  for (int step = 0; step < 60; ++step) {
    allocations = 0;
    counting = true;
    const Chunk chunk{&session, tokens, LogitsWanted::kNone};
    const bool ok = (*engine)->forward({&chunk, 1}).ok();
    counting = false;
    ASSERT_TRUE(ok);
    if (allocations > 0) ++steps_that_allocate;
  }
  EXPECT_EQ(steps_that_allocate, backend.slabs);
  EXPECT_LE(backend.slabs, 7);  // 240 blocks: 4, 4, 8, 16, 32, 64, 128
}

}  // namespace
}  // namespace eider
