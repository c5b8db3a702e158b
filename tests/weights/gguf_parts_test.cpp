#include "weights/gguf_parts.h"

#include <gtest/gtest.h>

#include "tests/support/gguf_writer.h"

namespace eider {
namespace {

using test::GgufWriter;
using test::TempDir;

GgufWriter part(const std::string& tensor) {
  return GgufWriter().tensor(tensor, {1}, {1.0f});
}

/// The message of opening `path`, the folder's name taken out; "" when it opens.
std::string open_error(const TempDir& directory, const std::string& path) {
  const auto parts = open_gguf_parts(path);
  if (parts) return "";
  std::string message = parts.error().message();
  const std::string prefix = directory.file("");
  for (std::size_t at = message.find(prefix); at != std::string::npos; at = message.find(prefix))
    message.erase(at, prefix.size());
  return message;
}

/// Writes one part with whatever split keys are given.
void write_part(const TempDir& directory, std::size_t number, std::size_t count, int split_no,
                int split_count, int tensor_count, GgufWriter writer) {
  writer.metadata("split.no", static_cast<std::uint16_t>(split_no));
  writer.metadata("split.count", static_cast<std::uint16_t>(split_count));
  writer.metadata("split.tensors.count", tensor_count);
  writer.write(directory.file(GgufWriter::split_name("m", number, count)));
}

TEST(GgufParts, OneFileIsOnePart) {
  const TempDir directory;
  part("a").write(directory.file("m.gguf"));
  const auto parts = open_gguf_parts(directory.file("m.gguf"));
  ASSERT_TRUE(parts) << parts.error().message();
  EXPECT_EQ(parts->size(), 1u);
}

TEST(GgufParts, OpensAllPartsInOrder) {
  const TempDir directory;
  // The first part may hold no tensor.
  const std::string path = GgufWriter::write_split(directory, "m", {GgufWriter(), part("a"), part("b")});
  const auto parts = open_gguf_parts(path);
  ASSERT_TRUE(parts) << parts.error().message();
  ASSERT_EQ(parts->size(), 3u);
  EXPECT_TRUE(parts->at(0).header.tensors().empty());
  EXPECT_EQ(parts->at(1).header.tensors()[0].name, "a");
  EXPECT_EQ(find_tensor(*parts, "b"), &parts->at(2).header.tensors()[0]);
  EXPECT_EQ(find_tensor(*parts, "c"), nullptr);
}

TEST(GgufParts, SixPartsAreOneModel) {
  const TempDir directory;
  GgufWriter indices;
  indices.tensor({"indices", {2}, 26, std::string(8, '\1'), {}});
  const std::string path = GgufWriter::write_split(
      directory, "m",
      {part("a"), part("b"), part("c"), indices, part("d"), part("e").tensor("f", {1}, {2.0f})});
  const auto parts = open_gguf_parts(path);
  ASSERT_TRUE(parts) << parts.error().message();
  ASSERT_EQ(parts->size(), 6u);
  EXPECT_EQ(parts->at(3).header.data_tensors()[0].name, "indices");
  EXPECT_EQ(find_tensor(*parts, "f"), &parts->at(5).header.tensors()[1]);

  std::filesystem::remove(directory.file("m-00005-of-00006.gguf"));
  EXPECT_EQ(open_error(directory, path),
            "m-00001-of-00006.gguf: 1 of 6 parts are missing: m-00005-of-00006.gguf");
}

TEST(GgufParts, PartsOfDifferentModelsAreErrors) {
  const TempDir directory;
  const auto write_models = [&] {
    GgufWriter::write_split(
        directory, "n",
        {part("a"), part("b"), part("c"), part("d"), part("e"), part("f").tensor("g", {1}, {2.0f})});
    return GgufWriter::write_split(directory, "m",
                                   {part("a"), part("b"), part("c"), part("d"), part("e"), part("f")});
  };
  const auto take_part = [&](const char* from, const char* to) {
    std::filesystem::rename(directory.file(from), directory.file(to));
  };
  std::string path = write_models();
  take_part("n-00004-of-00006.gguf", "m-00004-of-00006.gguf");
  EXPECT_EQ(open_error(directory, path),
            "m-00004-of-00006.gguf: metadata key split.tensors.count is 7, expected 6");
  path = write_models();
  take_part("m-00005-of-00006.gguf", "m-00002-of-00006.gguf");
  write_part(directory, 5, 6, 4, 6, 6, part("e"));
  EXPECT_EQ(open_error(directory, path), "m-00002-of-00006.gguf: metadata key split.no is 4, expected 1");
  path = write_models();
  write_part(directory, 3, 6, 2, 6, 6, part("f"));
  EXPECT_EQ(open_error(directory, path), "m-00006-of-00006.gguf: tensor \"f\" is also in an earlier part");
}

TEST(GgufParts, NamesTheMissingFiles) {
  const TempDir directory;
  const std::string path = GgufWriter::write_split(directory, "m", {part("a"), part("b"), part("c")});
  std::filesystem::remove(directory.file("m-00002-of-00003.gguf"));
  EXPECT_EQ(open_error(directory, path),
            "m-00001-of-00003.gguf: 1 of 3 parts are missing: m-00002-of-00003.gguf");
  std::filesystem::remove(directory.file("m-00003-of-00003.gguf"));
  EXPECT_EQ(open_error(directory, path),
            "m-00001-of-00003.gguf: 2 of 3 parts are missing: m-00002-of-00003.gguf, m-00003-of-00003.gguf");

  write_part(directory, 1, 60000, 0, 60000, 1, part("a"));
  const std::string message = open_error(directory, directory.file("m-00001-of-60000.gguf"));
  EXPECT_TRUE(message.ends_with(", m-00006-of-60000.gguf and 59994 more")) << message;
}

TEST(GgufParts, LaterPartsAreNoWayIn) {
  const TempDir directory;
  GgufWriter::write_split(directory, "m", {part("a"), part("b")});
  EXPECT_EQ(open_error(directory, directory.file("m-00002-of-00002.gguf")),
            "m-00002-of-00002.gguf: part 2 of 2; give the first, m-00001-of-00002.gguf");
}

TEST(GgufParts, NamesMustAgreeWithTheKeys) {
  const TempDir directory;
  part("a").metadata("split.count", std::uint16_t{2}).write(directory.file("m.gguf"));
  EXPECT_EQ(
      open_error(directory, directory.file("m.gguf")),
      "m.gguf: metadata key split.count is 2, but the file's name says nothing of parts; parts are named "
      "NAME-00001-of-0000N.gguf");
  part("a").write(directory.file("n-00001-of-00004.gguf"));
  EXPECT_EQ(open_error(directory, directory.file("n-00001-of-00004.gguf")),
            "n-00001-of-00004.gguf: metadata key split.count is missing, but the file's name says 4 parts; "
            "parts are "
            "named NAME-00001-of-0000N.gguf");
  write_part(directory, 1, 2, 0, 3, 2, part("a"));
  EXPECT_EQ(open_error(directory, directory.file("m-00001-of-00002.gguf")),
            "m-00001-of-00002.gguf: metadata key split.count is 3, but the file's name says 2 parts; parts "
            "are named "
            "NAME-00001-of-0000N.gguf");
}

TEST(GgufParts, APartThatIsAnotherPartIsAnError) {
  const TempDir directory;
  const std::string path = GgufWriter::write_split(directory, "m", {part("a"), part("b")});
  // The second leads back to the first.
  std::filesystem::remove(directory.file("m-00002-of-00002.gguf"));
  std::filesystem::create_symlink(path, directory.file("m-00002-of-00002.gguf"));
  EXPECT_EQ(open_error(directory, path), "m-00002-of-00002.gguf: metadata key split.no is 0, expected 1");
}

TEST(GgufParts, PartsMustFitTogether) {
  const TempDir directory;
  const std::string path = directory.file("m-00001-of-00002.gguf");
  write_part(directory, 1, 2, 1, 2, 2, part("a"));
  write_part(directory, 2, 2, 1, 2, 2, part("b"));
  EXPECT_EQ(open_error(directory, path), "m-00001-of-00002.gguf: metadata key split.no is 1, expected 0");
  write_part(directory, 1, 2, 0, 2, 3, part("a"));
  EXPECT_EQ(open_error(directory, path),
            "m-00001-of-00002.gguf: metadata key split.tensors.count is 3, expected 2");
  write_part(directory, 2, 2, 1, 5, 2, part("b"));
  EXPECT_EQ(open_error(directory, path), "m-00002-of-00002.gguf: metadata key split.count is 5, expected 2");
  write_part(directory, 2, 2, 1, 2, 2, part("a"));
  EXPECT_EQ(open_error(directory, path), "m-00002-of-00002.gguf: tensor \"a\" is also in an earlier part");
  test::write_file(directory.file("m-00002-of-00002.gguf"), "GGUF");
  EXPECT_EQ(open_error(directory, path),
            "m-00002-of-00002.gguf: the file ends inside the version, at byte 4: it is cut off or damaged");
}

}  // namespace
}  // namespace eider
