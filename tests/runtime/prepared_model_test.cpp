#include "runtime/prepared_model.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

#include "backend/cpu/cpu_backend.h"
#include "base/machine.h"
#include "runtime/engine.h"
#include "tests/support/random_model.h"
#include "tests/support/temp_dir.h"
#include "weights/fingerprint.h"

namespace eider {
namespace {

constexpr PrepareLimits kKeepAll{.smallest_kept = 0};
constexpr PrepareLimits kCheckBehind{.smallest_kept = 0, .checked_first = 0};

class PreparedModelTest : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    path_ = temp_.file("model.gguf");
    test::RandomModel(Format::kQ8_0, GetParam()).write(path_);
    backend_ = make_cpu_backend(pool_, machine_, cpu_isas(machine_).front()).value();
  }

  Model open_model() const { return load_model(Checkpoint::open(path_).value()).value(); }

  std::string cache_path() const { return cache_.path_of(prepared_index(open_model(), *backend_)->key()); }

  std::shared_ptr<PreparedModel> load(const PrepareLimits& limits = kKeepAll) {
    auto loaded = PreparedModel::load(open_model(), *backend_, cache_, {}, limits);
    EXPECT_TRUE(loaded.ok()) << (loaded.ok() ? "" : loaded.error().message());
    return loaded.ok() ? std::move(loaded).value() : nullptr;
  }

  /// Logits of a few tokens.
  std::vector<float> logits(std::shared_ptr<PreparedModel> prepared) {
    auto engine = Engine::create(open_model(), *backend_, {.context = 64}, std::move(prepared)).value();
    Session session = engine->new_session();
    const std::vector<TokenId> tokens = {5, 17, 300, 2, 99};
    EXPECT_TRUE(engine->prefill(session, tokens).ok());
    const auto row = engine->logits();
    return {row.begin(), row.end()};
  }

  void expect_same(const std::vector<float>& a, const std::vector<float>& b) {
    ASSERT_EQ(a.size(), b.size());
    EXPECT_EQ(std::memcmp(a.data(), b.data(), a.size() * sizeof(float)), 0);
  }

  /// Writes the whole file.
  void fill_cache() {
    const auto prepared = load();
    ASSERT_NE(prepared, nullptr);
    ASSERT_TRUE(prepared->finish({}).ok());
  }

  void flip(std::int64_t offset) {
    std::fstream file(cache_path(), std::ios::binary | std::ios::in | std::ios::out);
    file.seekg(offset);
    const int byte = file.get();
    file.seekp(offset);
    file.put(static_cast<char>(byte ^ 0x10));
  }

  test::TempDir temp_;
  Machine machine_ = detect_machine();
  ThreadPool pool_{2};
  std::unique_ptr<Backend> backend_;
  WeightCache cache_{temp_.file("prepared"), std::nullopt};
  std::string path_;
};

TEST_P(PreparedModelTest, TheSecondStartMapsWhatTheFirstOneWrote) {
  const std::vector<float> without = logits(nullptr);
  {
    const auto first = load();
    EXPECT_EQ(first->mapped_bytes(), 0);
    expect_same(logits(first), without);
    EXPECT_TRUE(first->finish({}).ok());
  }
  const auto second = load();
  EXPECT_EQ(second->mapped_bytes(), prepared_index(open_model(), *backend_)->data_bytes());
  EXPECT_FALSE(second->is_writing());
  EXPECT_EQ(second->note(), "");
  expect_same(logits(second), without);
  const auto third = load(kCheckBehind);
  expect_same(logits(third), without);
  EXPECT_TRUE(third->status().ok());
}

TEST_P(PreparedModelTest, PrepareWritesWhatAStartWouldWrite) {
  const Model model = open_model();
  const PreparedIndex index = *prepared_index(model, *backend_);
  fill_cache();
  const auto read = [&] {
    std::ifstream file(cache_path(), std::ios::binary);
    return std::string{std::istreambuf_iterator<char>(file), {}};
  };
  const std::string by_start = read();
  ASSERT_TRUE(remove_prepared(cache_path()));
  ASSERT_TRUE(prepare_model(model, *backend_, cache_, index, {}).ok());
  EXPECT_EQ(read(), by_start);
}

TEST_P(PreparedModelTest, PrepareGoesOnWhereItWasStopped) {
  const Model model = open_model();
  const PreparedIndex index = *prepared_index(model, *backend_);
  std::int64_t calls = 0;
  const Status stopped =
      prepare_model(model, *backend_, cache_, index, [&](std::int64_t, std::int64_t) { return ++calls < 2; });
  EXPECT_FALSE(stopped.ok());
  EXPECT_EQ(PreparedFile::open(cache_path())->finished(), 1u);
  const auto prepared = load();
  EXPECT_GT(prepared->mapped_bytes(), 0);
  EXPECT_TRUE(prepared->finish({}).ok());
  expect_same(logits(load()), logits(nullptr));
  EXPECT_TRUE(PreparedFile::open(cache_path())->complete());
}

TEST_P(PreparedModelTest, SmallModelsAreNotKeptUnlessAskedFor) {
  EXPECT_EQ(load(PrepareLimits{}), nullptr);
  EXPECT_FALSE(std::filesystem::exists(cache_path()));
  fill_cache();
  EXPECT_NE(load(PrepareLimits{}), nullptr);
}

TEST_P(PreparedModelTest, DamageIsMendedAtTheStart) {
  const std::vector<float> without = logits(nullptr);
  fill_cache();
  const PreparedIndex index = *prepared_index(open_model(), *backend_);
  std::mt19937 random(1);
  std::vector<std::int64_t> places = {
      0, 20, index.record_offset(1), index.data_offset() - 1, index.data_offset(), index.file_bytes() - 1};
  for (int i = 0; i < 10; ++i)
    places.push_back(static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(index.file_bytes())));
  for (const std::int64_t place : places) {
    flip(place);
    const auto mended = load();
    EXPECT_NE(mended->note(), "") << "byte " << place;
    expect_same(logits(mended), without);
    ASSERT_TRUE(mended->finish({}).ok());
    EXPECT_EQ(load()->note(), "") << "byte " << place;
  }
  std::filesystem::resize_file(cache_path(), static_cast<std::uintmax_t>(index.file_bytes() / 2));
  const auto mended = load();
  expect_same(logits(mended), without);
  ASSERT_TRUE(mended->finish({}).ok());
  EXPECT_EQ(load()->mapped_bytes(), index.data_bytes());
}

TEST_P(PreparedModelTest, DamageFoundBehindStopsTheRun) {
  fill_cache();
  const PreparedIndex index = *prepared_index(open_model(), *backend_);
  flip(index.data_offset() + index.sections()[1].offset + 5);
  const auto damaged = load(kCheckBehind);
  while (damaged->status().ok()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(damaged->status().error().message(),
            cache_path() + ": the prepared weights of " + index.sections()[1].name() +
                " are damaged, so what was computed is void; it is prepared anew at the next start");
  auto engine = Engine::create(open_model(), *backend_, {.context = 64}, damaged).value();
  Session session = engine->new_session();
  const std::vector<TokenId> tokens = {1};
  const Status stopped = engine->prefill(session, tokens);
  ASSERT_FALSE(stopped.ok());
  EXPECT_EQ(stopped.error().message(), damaged->status().error().message());

  const auto next = load(kCheckBehind);
  EXPECT_EQ(next->mapped_bytes(), index.data_bytes() - index.sections()[1].bytes);
  expect_same(logits(next), logits(nullptr));
  EXPECT_TRUE(next->finish({}).ok());
  expect_same(logits(load()), logits(nullptr));
}

/// A run that is over before the check is has only the end to hear of damage.
TEST_P(PreparedModelTest, FinishWaitsForTheCheck) {
  fill_cache();
  const PreparedIndex index = *prepared_index(open_model(), *backend_);
  std::int64_t done = 0;
  EXPECT_TRUE(load(kCheckBehind)
                  ->finish([&](std::int64_t now, std::int64_t total) {
                    EXPECT_EQ(total, index.data_bytes());
                    EXPECT_GE(now, std::exchange(done, now));
                    return true;
                  })
                  .ok());
  flip(index.data_offset() + index.sections().back().offset + 5);
  {
    const auto damaged = load(kCheckBehind);
    EXPECT_TRUE(damaged->finish({}).ok());
    EXPECT_FALSE(damaged->status().ok());
  }
  EXPECT_EQ(load(kCheckBehind)->mapped_bytes(), index.data_bytes() - index.sections().back().bytes);
}

TEST_P(PreparedModelTest, AChangedModelIsPreparedAnew) {
  fill_cache();
  const std::string before = cache_path();
  const auto time = std::filesystem::last_write_time(path_);
  {
    // One weight, in a page that the fingerprint does not read: the time of the change tells.
    std::fstream file(path_, std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(-static_cast<std::streamoff>(20'000), std::ios::end);
    file.put(7);
  }
  std::filesystem::last_write_time(path_, time + std::chrono::seconds(1));
  EXPECT_NE(cache_path(), before);
  const auto prepared = load();
  EXPECT_EQ(prepared->mapped_bytes(), 0);
  expect_same(logits(prepared), logits(nullptr));
  EXPECT_TRUE(prepared->finish({}).ok());
  EXPECT_FALSE(std::filesystem::exists(before));
}

TEST_P(PreparedModelTest, WhileAnotherProcessWritesNoOneElseDoes) {
  const PreparedIndex index = *prepared_index(open_model(), *backend_);
  ASSERT_TRUE(cache_.make_room(index).ok());
  auto other = PreparedFile::open_to_write(cache_path(), index);
  ASSERT_TRUE(other.ok() && other->has_value());
  const auto prepared = load();
  EXPECT_FALSE(prepared->is_writing());
  expect_same(logits(prepared), logits(nullptr));
  int asked = 0;
  const Status waited = prepare_model(open_model(), *backend_, cache_, index,
                                      [&](std::int64_t, std::int64_t) { return ++asked < 3; });
  EXPECT_FALSE(waited.ok());
  EXPECT_EQ(asked, 3);
}

TEST_P(PreparedModelTest, ACacheThatCannotBeUsedIsOneLine) {
  const WeightCache small(temp_.file("prepared"), 1000);
  const auto too_small = PreparedModel::load(open_model(), *backend_, small, {}, kKeepAll);
  ASSERT_FALSE(too_small.ok());
  EXPECT_NE(too_small.error().message().find("--cache-size"), std::string::npos);
  const WeightCache nowhere(temp_.write("file", "") + "/prepared", std::nullopt);
  EXPECT_FALSE(PreparedModel::load(open_model(), *backend_, nowhere, {}, kKeepAll).ok());
}

INSTANTIATE_TEST_SUITE_P(, PreparedModelTest, testing::Bool(), [](const auto& param_info) {
  return std::string(param_info.param ? "Moe" : "Dense");
});

TEST(Fingerprint, TellsFilesApart) {
  const test::TempDir directory;
  const std::string path = directory.file("a.gguf");
  test::RandomModel(Format::kQ8_0, false).write(path);
  const auto first = fingerprint(*Checkpoint::open(path).value());
  ASSERT_TRUE(first.has_value());
  const auto time = std::filesystem::last_write_time(path);
  std::filesystem::rename(path, directory.file("b.gguf"));
  EXPECT_EQ(fingerprint(*Checkpoint::open(directory.file("b.gguf")).value()), first)
      << "the name does not count";
  std::filesystem::last_write_time(directory.file("b.gguf"), time + std::chrono::seconds(1));
  EXPECT_NE(fingerprint(*Checkpoint::open(directory.file("b.gguf")).value()), first);

  test::RandomModel(Format::kQ4_0, false).write(path);
  std::filesystem::last_write_time(path, time);
  EXPECT_NE(fingerprint(*Checkpoint::open(path).value()), first);
}

}  // namespace
}  // namespace eider
