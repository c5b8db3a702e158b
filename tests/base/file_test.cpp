#include "base/file.h"

#include <gtest/gtest.h>

#include <array>

#include "tests/support/temp_dir.h"

namespace eider {
namespace {

TEST(File, IsReadAndWrittenAtOffsets) {
  const test::TempDir folder;
  const std::string path = folder.file("file");
  const Result<File> file = File::open(path, File::Mode::kCreate);
  ASSERT_TRUE(file.ok()) << file.error().message();
  const std::string text = "0123456789";
  ASSERT_TRUE(file->write(2, std::as_bytes(std::span(text))).ok());
  EXPECT_EQ(file->size(), 12);
  std::array<char, 3> piece;
  ASSERT_TRUE(file->read(9, std::as_writable_bytes(std::span(piece))).ok());
  EXPECT_EQ(std::string(piece.begin(), piece.end()), "789");

  EXPECT_TRUE(file->truncate(10).ok());
  EXPECT_EQ(file->size(), 10);
  EXPECT_EQ(file->read(9, std::as_writable_bytes(std::span(piece))).error().message(),
            path + ": ends at byte 10: it is cut off");
}

TEST(File, SaysWhatCannotBeDone) {
  const test::TempDir folder;
  const std::string absent = folder.file("absent"), path = folder.write("file", "text");
  EXPECT_EQ(File::open(absent, File::Mode::kUpdate).error().message(),
            absent + ": cannot open: No such file or directory");
  EXPECT_EQ(File::open(absent + "/file", File::Mode::kCreate).error().message(),
            absent + "/file: cannot create: No such file or directory");
  EXPECT_EQ(File::open("/dev/null", File::Mode::kUpdate).error().message(),
            "/dev/null: is not a regular file");
  const Result<File> read_only = File::open(path, File::Mode::kRead);
  ASSERT_TRUE(read_only.ok());
  EXPECT_FALSE(read_only->truncate(0).ok());
  EXPECT_EQ(read_only->size(), 4);
}

}  // namespace
}  // namespace eider
