#include "weights/weight_cache.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <ctime>
#include <filesystem>

#include "tests/support/temp_dir.h"
#include "weights/prepared_file.h"

namespace eider {
namespace {

PreparedIndex index_of(std::uint64_t model, std::string source = "", std::int64_t bytes = 100'000) {
  return PreparedIndex({.fingerprint = {model, model}, .layout = 1},
                       source.empty() ? "/models/" + std::to_string(model) : std::move(source),
                       {{"weight", 0, bytes}}, 4096);
}

class WeightCacheTest : public testing::Test {
 protected:
  /// A finished file, last used `age` seconds ago.
  std::string add(const PreparedIndex& index, int age) {
    const WeightCache cache(directory(), std::int64_t{1} << 40);
    EXPECT_TRUE(cache.make_room(index).ok());
    const std::string path = cache.path_of(index.key());
    auto file = PreparedFile::open_to_write(path, index);
    EXPECT_TRUE(file.ok());
    const std::vector<std::byte> data(static_cast<std::size_t>(index.data_bytes()));
    EXPECT_TRUE((*file)->write(0, data, {}).ok());
    const timespec time{std::time(nullptr) - age, 0};
    const timespec times[2] = {time, time};
    EXPECT_EQ(utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
    return path;
  }
  std::string directory() const { return temp_.file("cache/prepared"); }
  static bool exists(const std::string& path) { return std::filesystem::exists(path); }

  test::TempDir temp_;
};

TEST_F(WeightCacheTest, ListsTheOneUsedLastFirst) {
  EXPECT_TRUE(WeightCache(directory(), {}).list().empty());
  const std::string old = add(index_of(1), 1000);
  const std::string young = add(index_of(2), 10);
  const std::string bad = directory() + "/bad.prepared";
  test::write_file(bad, "nonsense");
  test::write_file(directory() + "/unrelated.txt", "kept");
  const WeightCache cache(directory(), {});
  auto entries = cache.list();
  ASSERT_EQ(entries.size(), 3u);
  EXPECT_EQ(entries[0].path, bad);
  EXPECT_FALSE(entries[0].problem.empty());
  EXPECT_EQ(entries[1].path, young);
  EXPECT_EQ(entries[1].source, "/models/2");
  EXPECT_EQ(entries[1].finished, 1u);
  EXPECT_EQ(entries[1].sections, 1u);
  EXPECT_GE(entries[1].bytes, 100'000);
  EXPECT_EQ(entries[2].path, old);
  cache.touch(old);
  EXPECT_NE(cache.list()[2].path, old);
}

TEST_F(WeightCacheTest, RemovesWhatWasUsedLeastRecently) {
  const std::string a = add(index_of(1), 3000), b = add(index_of(2), 2000), c = add(index_of(3), 1000);
  const std::int64_t each = index_of(1).file_bytes();
  EXPECT_TRUE(WeightCache(directory(), 4 * each).make_room(index_of(4)).ok());
  EXPECT_TRUE(exists(a) && exists(b) && exists(c));
  EXPECT_TRUE(WeightCache(directory(), 3 * each).make_room(index_of(4)).ok());
  EXPECT_FALSE(exists(a));
  EXPECT_TRUE(exists(b) && exists(c));
  EXPECT_TRUE(WeightCache(directory(), each).make_room(index_of(4)).ok());
  EXPECT_FALSE(exists(b) || exists(c));
}

TEST_F(WeightCacheTest, AFileCountsOnceWhenItIsMended) {
  const std::string a = add(index_of(1), 3000), b = add(index_of(2), 2000);
  EXPECT_TRUE(WeightCache(directory(), 2 * index_of(1).file_bytes()).make_room(index_of(1)).ok());
  EXPECT_TRUE(exists(a) && exists(b));
}

TEST_F(WeightCacheTest, ABudgetThatIsTooSmallRemovesNothing) {
  const std::string a = add(index_of(1), 3000);
  const auto status = WeightCache(directory(), 5000).make_room(index_of(2));
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().message().find("--cache-size"), std::string::npos) << status.error().message();
  EXPECT_TRUE(exists(a));
}

TEST_F(WeightCacheTest, AFileThatIsBeingWrittenStays) {
  const std::string a = add(index_of(1), 3000);
  const auto writer = PreparedFile::open_to_write(a, index_of(1));
  ASSERT_TRUE(writer.ok() && writer->has_value());
  const auto status = WeightCache(directory(), index_of(1).file_bytes()).make_room(index_of(2));
  EXPECT_FALSE(status.ok());
  EXPECT_TRUE(exists(a));
  EXPECT_FALSE(remove_prepared(a));
}

TEST_F(WeightCacheTest, WhatASourceWasBeforeItChangedGoes) {
  const std::string before = add(index_of(1, "/models/a"), 10), other = add(index_of(2, "/models/b"), 10);
  EXPECT_TRUE(WeightCache(directory(), {}).make_room(index_of(3, "/models/a")).ok());
  EXPECT_FALSE(exists(before));
  EXPECT_TRUE(exists(other));
}

TEST_F(WeightCacheTest, ADirectoryThatCannotBeMadeIsOneLine) {
  const std::string file = temp_.write("file", "");
  const auto status = WeightCache(file + "/prepared", {}).make_room(index_of(1));
  ASSERT_FALSE(status.ok());
  EXPECT_TRUE(status.error().message().starts_with(file)) << status.error().message();
}

}  // namespace
}  // namespace eider
