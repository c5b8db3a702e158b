#include "weights/prepared_file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <random>

#include "tests/support/temp_dir.h"

namespace eider {
namespace {

constexpr PreparedKey kKey{.fingerprint = {1, 2}, .layout = 3};

/// Three sections, of one to three tensors, none of which ends where a page or a cache line does.
PreparedIndex small_index(PreparedKey key = kKey, std::string source = "/models/a.gguf") {
  return PreparedIndex(
      key, std::move(source),
      {{"q", 0, 1000}, {"k", 0, 70}, {"v", 0, 3100}, {"down", 1, 4095}, {"head", -1, 200}, {"tail", -1, 1}},
      4096);
}

/// A section's bytes as prepare() would make them: random, with zeros between and after the tensors.
std::vector<std::byte> section_data(const PreparedIndex& index, std::size_t section) {
  std::mt19937 random(static_cast<unsigned>(section));
  const PreparedSection& place = index.sections()[section];
  std::vector<std::byte> data(static_cast<std::size_t>(place.bytes));
  for (std::size_t i = place.first; i < place.first + place.count; ++i)
    for (std::int64_t at = 0; at < index.tensors()[i].bytes; ++at)
      data[static_cast<std::size_t>(index.offset(i) - place.offset + at)] = std::byte(random());
  return data;
}

std::string read_bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

PreparedFile open_to_write(const std::string& path, const PreparedIndex& index) {
  auto file = PreparedFile::open_to_write(path, index);
  EXPECT_TRUE(file.ok()) << (file.ok() ? "" : file.error().message());
  return std::move(file).value().value();
}

void write_all(const std::string& path, const PreparedIndex& index) {
  PreparedFile file = open_to_write(path, index);
  for (std::size_t i = 0; i < index.sections().size(); ++i)
    ASSERT_TRUE(file.write(i, section_data(index, i), {}).ok());
}

/// Whether a start would use every section of the file as it is.
bool is_whole(const std::string& path, const PreparedIndex& index) {
  const auto file = PreparedFile::open(path);
  if (!file.ok() || !file->index().fits(index) || !file->complete()) return false;
  for (std::size_t i = 0; i < index.sections().size(); ++i) {
    const auto right = file->check_on_disk(i, {});
    if (!right.ok() || !*right) return false;
  }
  return true;
}

TEST(PreparedIndex, PlacesSectionsAtTheAlignment) {
  const PreparedIndex index = small_index();
  ASSERT_EQ(index.sections().size(), 3u);
  EXPECT_EQ(index.sections()[0].bytes, 8192);  // 1024 + 128 + 3100
  EXPECT_EQ(index.sections()[1].offset, 8192);
  EXPECT_EQ(index.sections()[2].offset, 12288);
  EXPECT_EQ(index.offset(1), 1024);
  EXPECT_EQ(index.offset(2), 1024 + 128);
  EXPECT_EQ(index.extent(2), 8192 - 1152);  // up to the next section
  EXPECT_EQ(index.data_bytes(), 16384);
  EXPECT_EQ(index.data_offset() % 4096, 0);
  EXPECT_GE(index.data_offset(), index.records_end());
}

TEST(PreparedIndex, IsReadAsItWasWritten) {
  const PreparedIndex index = small_index();
  const auto parsed = PreparedIndex::parse(std::as_bytes(std::span(index.start())));
  ASSERT_TRUE(parsed.ok()) << parsed.error().message();
  EXPECT_TRUE(parsed->fits(index));
  EXPECT_EQ(parsed->source(), "/models/a.gguf");
  EXPECT_EQ(parsed->start(), index.start());
}

TEST(PreparedFile, HoldsWhatWasWritten) {
  const test::TempDir directory;
  const std::string path = directory.file("a.prepared");
  const PreparedIndex index = small_index();
  write_all(path, index);
  EXPECT_TRUE(is_whole(path, index));
  const std::string bytes = read_bytes(path);
  ASSERT_EQ(static_cast<std::int64_t>(bytes.size()), index.file_bytes());
  const auto file = PreparedFile::open(path);
  for (std::size_t i = 0; i < index.sections().size(); ++i) {
    const std::vector<std::byte> data = section_data(index, i);
    const auto stored =
        std::as_bytes(std::span(bytes))
            .subspan(static_cast<std::size_t>(index.data_offset() + index.sections()[i].offset), data.size());
    EXPECT_TRUE(std::ranges::equal(stored, data));
    EXPECT_EQ(file->check(i, data, [] { return true; }), true);
    EXPECT_EQ(file->check(i, data, [] { return false; }), std::nullopt);
  }
}

TEST(PreparedFile, EveryFlippedByteIsNoticedAndMended) {
  const test::TempDir directory;
  const std::string path = directory.file("a.prepared");
  const PreparedIndex index = small_index();
  write_all(path, index);
  const std::string good = read_bytes(path);
  std::size_t unnoticed = 0;
  for (std::size_t i = 0; i < good.size(); ++i) {
    const auto put = [&](int byte) {
      std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
      file.seekp(static_cast<std::streamoff>(i));
      file.put(static_cast<char>(byte));
    };
    put(good[i] ^ (1 << i % 8));
    unnoticed += is_whole(path, index);
    if (i % 499 == 0) {  // mending waits for the disk
      PreparedFile file = open_to_write(path, index);
      for (std::size_t section = 0; section < index.sections().size(); ++section) {
        const bool right =
            file.state(section) == PreparedFile::State::kFinished && *file.check_on_disk(section, {});
        if (right) continue;
        ASSERT_TRUE(file.write(section, section_data(index, section), {}).ok());
      }
      EXPECT_TRUE(is_whole(path, index)) << "byte " << i;
      EXPECT_EQ(read_bytes(path), good);
    } else {
      put(good[i]);
    }
  }
  EXPECT_EQ(unnoticed, 0u);
}

TEST(PreparedFile, EveryLengthIsNoticed) {
  const test::TempDir directory;
  const std::string path = directory.file("a.prepared");
  const PreparedIndex index = small_index();
  write_all(path, index);
  const std::string good = read_bytes(path);
  for (std::size_t length = good.size(); length-- > 0;) {
    std::filesystem::resize_file(path, length);
    EXPECT_FALSE(is_whole(path, index)) << length;
  }
  test::write_file(path, good + "x");
  EXPECT_FALSE(is_whole(path, index));
}

TEST(PreparedFile, ATruncatedFileKeepsItsFirstSections) {
  const test::TempDir directory;
  const std::string path = directory.file("a.prepared");
  const PreparedIndex index = small_index();
  write_all(path, index);
  std::filesystem::resize_file(path, static_cast<std::uintmax_t>(index.data_offset() + 8192 + 5));
  {
    PreparedFile file = open_to_write(path, index);
    EXPECT_EQ(file.state(0), PreparedFile::State::kFinished);
    EXPECT_EQ(file.state(1), PreparedFile::State::kMissing);
    EXPECT_EQ(file.state(2), PreparedFile::State::kMissing);
    ASSERT_TRUE(file.write(1, section_data(index, 1), {}).ok());
    ASSERT_TRUE(file.write(2, section_data(index, 2), {}).ok());
  }
  EXPECT_TRUE(is_whole(path, index));
}

TEST(PreparedFile, GoesOnWhereItStopped) {
  const test::TempDir directory;
  const std::string path = directory.file("a.prepared");
  const PreparedIndex index = small_index();
  {
    PreparedFile file = open_to_write(path, index);
    ASSERT_TRUE(file.write(0, section_data(index, 0), {}).ok());
    const Status stopped =
        file.write(1, section_data(index, 1), [](std::int64_t, std::int64_t) { return false; });
    EXPECT_FALSE(stopped.ok());
  }
  EXPECT_FALSE(is_whole(path, index));
  PreparedFile file = open_to_write(path, index);
  EXPECT_EQ(file.state(0), PreparedFile::State::kFinished);
  EXPECT_EQ(file.state(1), PreparedFile::State::kMissing);
  EXPECT_EQ(file.finished(), 1u);
}

TEST(PreparedFile, AnotherKeyOrVersionIsReplaced) {
  const test::TempDir directory;
  const std::string path = directory.file("a.prepared");
  PreparedKey stale = kKey;
  stale.fingerprint[1] = 9;
  write_all(path, small_index(stale));
  EXPECT_FALSE(is_whole(path, small_index()));
  EXPECT_EQ(open_to_write(path, small_index()).finished(), 0u);

  write_all(path, small_index());
  std::string bytes = read_bytes(path);
  bytes[8] = 2;  // the format's version
  test::write_file(path, bytes);
  const auto opened = PreparedFile::open(path);
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().message(), path + ": has version 2, this eider reads 1");
  write_all(path, small_index());
  EXPECT_TRUE(is_whole(path, small_index()));
}

TEST(PreparedFile, ARecordOfAnotherFileOrSectionDoesNotPass) {
  const PreparedIndex index = small_index();
  PreparedKey other = kKey;
  other.fingerprint[0] = 7;
  const auto record = index.make_record(0, {1, 2, 3});
  EXPECT_TRUE(index.is_record(0, record));
  EXPECT_FALSE(small_index(other).is_record(0, record));
  EXPECT_FALSE(index.is_record(2, index.make_record(1, {5})));
  const auto two = PreparedIndex(kKey, "", {{"a", 0, 1}, {"b", 1, 1}}, 4096);
  EXPECT_FALSE(two.is_record(1, two.make_record(0, {5})));
}

TEST(PreparedFile, OneWritesAtATime) {
  const test::TempDir directory;
  const std::string path = directory.file("a.prepared");
  const PreparedIndex index = small_index();
  std::optional<PreparedFile> first(open_to_write(path, index));
  const auto second = PreparedFile::open_to_write(path, index);
  ASSERT_TRUE(second.ok());
  EXPECT_FALSE(second->has_value());
  EXPECT_TRUE(PreparedFile::open(path).ok());  // readers do not mind
  first.reset();
  EXPECT_EQ(open_to_write(path, index).finished(), 0u);
}

TEST(PreparedFile, AFileThatMovedServesAsWell) {
  const test::TempDir directory;
  const std::string path = directory.file("a.prepared");
  write_all(path, small_index(kKey, "/models/a.gguf"));
  EXPECT_TRUE(is_whole(path, small_index(kKey, "/elsewhere/with a longer name/b.gguf")));
  EXPECT_EQ(open_to_write(path, small_index(kKey, "/elsewhere/b.gguf")).finished(), 3u);
}

/// A limit on the size of files, as a disk that is full at that byte.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(std::int64_t bytes) : old_handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &old_);
    const rlimit limit{static_cast<rlim_t>(bytes), old_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    setrlimit(RLIMIT_FSIZE, &old_);
    std::signal(SIGXFSZ, old_handler_);
  }

 private:
  rlimit old_{};
  void (*old_handler_)(int);
};

TEST(PreparedFile, AFileThatCannotBeMadeLeavesNothing) {
  const test::TempDir directory;
  const std::string path = directory.file("a.prepared");
  const PreparedIndex index = small_index();
  for (std::int64_t bytes = 0; bytes < index.file_bytes(); bytes += 509) {
    const FileSizeLimit limit(bytes);
    const auto file = PreparedFile::open_to_write(path, index);
    ASSERT_FALSE(file.ok()) << bytes;
    EXPECT_EQ(file.error().message(), path + ": cannot write: File too large");
    EXPECT_FALSE(std::filesystem::exists(path));
  }
}

TEST(PreparedFile, WhatIsNoSuchFileIsOneLine) {
  const test::TempDir directory;
  EXPECT_EQ(PreparedFile::open(directory.file("b")).error().message(),
            directory.file("b") + ": cannot open: No such file or directory");
  const std::string text = directory.write("c", std::string(500, 'x'));
  EXPECT_EQ(PreparedFile::open(text).error().message(), text + ": is no prepared file");
  EXPECT_FALSE(PreparedFile::open(directory.write("d", "")).ok());
  EXPECT_FALSE(PreparedFile::open_to_write(directory.file("no/such/directory"), small_index()).ok());
}

}  // namespace
}  // namespace eider
