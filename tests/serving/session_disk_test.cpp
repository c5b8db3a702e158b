#include "serving/session_disk.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <random>
#include <thread>

#include "tests/runtime/fake_backend.h"
#include "tests/support/temp_dir.h"

namespace eider::serving {
namespace {

using eider::test::FakeBackend;
using eider::test::full_kind;
using eider::test::mix;
using eider::test::sliding_kind;
using eider::test::some_tokens;

constexpr std::int64_t kContext = 8192;

// A disk, and sessions whose blocks' contents follow from their tokens.
class Store {
 public:
  explicit Store(const std::string& directory, std::int64_t bytes = std::int64_t{1} << 30) {
    auto disk = SessionDisk::open(
        {directory, bytes}, SessionFormat({7, 7}, pool_, kContext, test::kFakeVocab),
        [this](const std::string& line) { log.push_back(line); }, [] {});
    if (disk.ok())
      disk_ = std::move(*disk);
    else
      problem = disk.error().message();
  }

  void save(std::uint64_t seed, std::int64_t length) {
    Session session(pool_, kContext);
    const std::vector<TokenId> tokens = some_tokens(length, seed);
    EXPECT_TRUE(session.reserve(length).ok());
    session.append(tokens);
    fill(session);
    std::optional<bool> saved;
    disk_->save(scope_, session, [&](bool ok) { saved = ok; });
    disk_->finish();
    EXPECT_TRUE(saved.has_value());
  }

  // Loads what there is of such a session. How much; -1: what was loaded is wrong.
  std::int64_t load(std::uint64_t seed, std::int64_t length) {
    const std::vector<TokenId> tokens = some_tokens(length, seed);
    std::optional<Session> loaded;
    const Status begun = disk_->load(scope_, tokens, Session(pool_, kContext),
                                     [&](std::optional<Session> session) { loaded = std::move(session); });
    disk_->finish();
    if (!begun.ok() || !loaded) return 0;
    if (!std::equal(loaded->tokens().begin(), loaded->tokens().end(), tokens.begin())) return -1;
    Session expected(pool_, kContext);
    EXPECT_TRUE(expected.reserve(loaded->length()).ok());
    expected.append(loaded->tokens());
    fill(expected);
    for (const BlockPlace& place : loaded->held_blocks()) {
      const auto bytes = static_cast<std::size_t>(pool_.block_bytes(place.kind));
      if (std::memcmp(loaded->block(place), expected.block(place), bytes) != 0) return -1;
    }
    return loaded->length();
  }

  SessionDisk& disk() { return *disk_; }
  std::vector<std::string> log;
  std::string problem;

 private:
  void fill(const Session& session) {
    for (const BlockPlace& place : session.held_blocks()) {
      std::uint64_t digest = mix(static_cast<std::uint64_t>(place.kind), place.index, session.tokens()[0]);
      const auto words = static_cast<std::size_t>(pool_.block_bytes(place.kind)) / sizeof digest;
      for (std::size_t i = 0; i < words; ++i) {
        digest = mix(digest, static_cast<std::int64_t>(i), session.tokens()[1]);
        std::memcpy(session.block(place) + i * sizeof digest, &digest, sizeof digest);
      }
    }
  }

  FakeBackend backend_;
  KvPool pool_{backend_, {full_kind(), sliding_kind(100)}, KvType::kF16, 0};
  const ScopeHash scope_ = hash_scope("");
  std::unique_ptr<SessionDisk> disk_;
};

TEST(SessionDisk, GivesTheLongestOfWhatWasSaved) {
  const test::TempDir directory;
  Store store(directory.file("sessions"));
  store.save(1, 300);
  store.save(1, 700);  // goes on from the first, which is not needed any more
  store.save(2, 400);
  EXPECT_EQ(store.disk().sessions(), 2);
  EXPECT_EQ(store.load(1, 1000), 700);
  EXPECT_EQ(store.load(2, 500), 400);
  EXPECT_EQ(store.load(2, 200), 0);  // its window is not there any more
  EXPECT_EQ(store.load(3, 200), 0);
  store.save(1, 700);  // is there already
  EXPECT_EQ(store.disk().sessions(), 2);
  EXPECT_EQ(store.log, std::vector<std::string>());
}

TEST(SessionDisk, TheBudgetHoldsWhatWasUsedLast) {
  const test::TempDir directory;
  std::int64_t each = 0;
  {
    Store store(directory.file("measure"));
    store.save(1, 300);
    each = store.disk().bytes();
  }
  {
    Store store(directory.file("sessions"), 3 * each + each / 2);
    for (std::uint64_t seed = 1; seed <= 3; ++seed) store.save(seed, 300);
    EXPECT_EQ(store.load(1, 301), 300);
    store.save(4, 300);
    EXPECT_EQ(store.disk().sessions(), 3);
    EXPECT_EQ(store.load(2, 301), 0);
    EXPECT_EQ(store.load(1, 301), 300);
    store.save(5, 8000);  // more than all of it
    EXPECT_EQ(store.load(5, 8000), 0);
    EXPECT_EQ(store.disk().sessions(), 3);
  }
  // The order outlasts a restart.
  Store store(directory.file("sessions"), each + each / 2);
  EXPECT_EQ(store.disk().sessions(), 1);
  EXPECT_EQ(store.load(1, 301), 300);
}

TEST(SessionDisk, DirectoriesThatCannotBeUsedAreErrors) {
  const test::TempDir directory;
  EXPECT_NE(Store(directory.write("file", "x")).problem, "");
  EXPECT_NE(Store("/proc/sessions").problem, "");
  EXPECT_NE(Store(directory.file("empty"), 0).problem, "");
  Store first(directory.file("sessions"));
  EXPECT_EQ(first.problem, "");
  EXPECT_NE(Store(directory.file("sessions")).problem, "");  // is in use
}

// Whenever a process ends, what it leaves is whole or is not taken.
TEST(SessionDisk, OutlivesBeingKilled) {
  const test::TempDir directory;
  const std::string path = directory.file("sessions");
  std::mt19937 random(5);
  std::int64_t found = 0;
  for (int kill_number = 0; kill_number < 40; ++kill_number) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      Store store(path, std::int64_t{1} << 20);
      for (std::uint64_t seed = 1;; ++seed)
        store.save(1 + seed % 20, 200 + static_cast<std::int64_t>(37 * seed % 1500));
    }
    std::this_thread::sleep_for(std::chrono::microseconds(std::uniform_int_distribution(500, 20000)(random)));
    ::kill(child, SIGKILL);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    Store store(path, std::int64_t{1} << 20);
    ASSERT_EQ(store.problem, "");
    EXPECT_EQ(store.log, std::vector<std::string>());
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
      const std::int64_t length = store.load(seed, 1700);
      ASSERT_GE(length, 0) << "seed " << seed;
      found += length > 0 ? 1 : 0;
    }
    for (const auto& file : std::filesystem::directory_iterator(path))
      EXPECT_EQ(file.path().string().find("partial"), std::string::npos) << file.path();
  }
  EXPECT_GT(found, 0);
}

}  // namespace
}  // namespace eider::serving
