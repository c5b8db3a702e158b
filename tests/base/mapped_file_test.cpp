#include "base/mapped_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <string_view>
#include <utility>

#include "tests/support/temp_dir.h"

namespace eider {
namespace {

using test::TempDir;

std::string_view text(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

TEST(MappedFile, HasTheBytesOfTheFile) {
  const TempDir directory;
  const std::string path = directory.write("a", std::string(10'000, 'x') + "end");
  const auto file = MappedFile::open(path);
  ASSERT_TRUE(file) << file.error().message();
  EXPECT_EQ(file->path(), path);
  EXPECT_EQ(file->bytes().size(), 10'003u);
  EXPECT_EQ(text(*file).substr(10'000), "end");
  advise_read_ahead(file->bytes());
  advise_read_ahead(file->bytes().subspan(5'000, 100));
  advise_read_ahead({});
}

TEST(MappedFile, MovesKeepTheAddress) {
  const TempDir directory;
  auto first = MappedFile::open(directory.write("a", "first"));
  auto second = MappedFile::open(directory.write("b", "second"));
  ASSERT_TRUE(first && second);
  const std::byte* data = first->bytes().data();
  MappedFile moved(std::move(*first));
  EXPECT_EQ(moved.bytes().data(), data);
  EXPECT_EQ(text(moved), "first");
  moved = std::move(*second);
  EXPECT_EQ(text(moved), "second");
  EXPECT_TRUE(moved.path().ends_with("/b"));
}

TEST(MappedFile, AnEmptyFileHasNoBytes) {
  const TempDir directory;
  const auto file = MappedFile::open(directory.write("empty", ""));
  ASSERT_TRUE(file) << file.error().message();
  EXPECT_TRUE(file->bytes().empty());
}

TEST(MappedFile, SaysWhyAFileCannotBeMapped) {
  const TempDir directory;
  const auto error_of = [&](const std::string& path) { return MappedFile::open(path).error().message(); };
  const std::string absent = directory.file("absent");
  EXPECT_EQ(error_of(absent), absent + ": cannot open: No such file or directory");
  EXPECT_EQ(error_of(directory.file("")), directory.file("") + ": is a directory, not a file");
  const std::string pipe = directory.file("pipe");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(error_of(pipe), pipe + ": is not a regular file") << "and it must not wait for a writer";
}

}  // namespace
}  // namespace eider
