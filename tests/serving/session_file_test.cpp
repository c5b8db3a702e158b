#include "serving/session_file.h"

#include <gtest/gtest.h>
#include <xxhash.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>

#include "tests/runtime/fake_backend.h"
#include "tests/support/memory_file.h"
#include "tests/support/temp_dir.h"

namespace eider::serving {
namespace {

using eider::test::FakeBackend;
using eider::test::full_kind;
using eider::test::sliding_kind;
using eider::test::some_tokens;

constexpr std::int64_t kVocab = 64, kMostTokens = 4096;

class SessionFileTest : public ::testing::Test {
 protected:
  // A session of `length` tokens whose blocks are filled with what tells them apart.
  Session make_session(std::int64_t length) {
    Session session(pool_, kMostTokens);
    session.keep_prompt_ends(4);
    const std::vector<TokenId> tokens = some_tokens(length, 1);
    for (std::int64_t done = 0; done < length; done += 50) {
      const auto next = std::span(tokens)
                            .subspan(static_cast<std::size_t>(done))
                            .first(static_cast<std::size_t>(std::min<std::int64_t>(50, length - done)));
      EXPECT_TRUE(session.reserve(std::ssize(next)).ok());
      session.append(next);
      if (done == 100) session.mark_prompt_end();
    }
    for (const BlockPlace& place : session.held_blocks())
      std::memset(session.block(place), static_cast<int>(1 + place.kind * 100 + place.index),
                  static_cast<std::size_t>(pool_.block_bytes(place.kind)));
    return session;
  }

  SessionIndex index_of(const Session& session) {
    SessionIndex index;
    index.scope = hash_scope("key");
    index.tokens.assign(session.tokens().begin(), session.tokens().end());
    index.prompt_ends.assign(session.prompt_ends().begin(), session.prompt_ends().end());
    for (const BlockPlace& place : session.held_blocks()) index.blocks.push_back({place, 0});
    return index;
  }

  std::string write(const Session& session) {
    SessionIndex index = index_of(session);
    std::vector<const std::byte*> data;
    for (const SessionIndex::Block& block : index.blocks) data.push_back(session.block(block.place));
    const std::string path = directory_.file("session");
    EXPECT_TRUE(format_.write(path, index, data).ok());
    return path;
  }

  // Nothing where the index is refused, else whether all blocks could be read.
  std::optional<bool> read(const SessionFormat& format, const std::string& path) {
    const auto file = File::open(path, File::Mode::kRead);
    EXPECT_TRUE(file.ok());
    const auto index = format.read_index(*file);
    if (!index.ok()) return std::nullopt;
    for (std::size_t i = 0; i < index->blocks.size(); ++i) {
      std::vector<std::byte> content(
          static_cast<std::size_t>(format.block_bytes(index->blocks[i].place.kind)));
      if (!format.read_block(*file, *index, i, content).ok()) return false;
    }
    return true;
  }

  test::TempDir directory_;
  FakeBackend backend_;
  KvPool pool_{backend_, {full_kind(), sliding_kind(100)}, KvType::kF16, 0};
  SessionFormat format_{{1, 2}, pool_, kMostTokens, kVocab};
};

std::string content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream content;
  content << file.rdbuf();
  return content.str();
}

TEST_F(SessionFileTest, ComesBackAsItWas) {
  const Session session = make_session(700);
  const std::string path = write(session);
  EXPECT_EQ(std::filesystem::file_size(path),
            static_cast<std::uintmax_t>(format_.file_bytes(index_of(session))));
  const auto file = File::open(path, File::Mode::kRead);
  ASSERT_TRUE(file.ok());
  const auto index = format_.read_index(*file);
  ASSERT_TRUE(index.ok()) << index.error().message();
  EXPECT_EQ(index->scope, hash_scope("key"));
  EXPECT_NE(index->scope, hash_scope("another key"));
  EXPECT_EQ(index->tokens, index_of(session).tokens);
  EXPECT_EQ(index->prompt_ends, (std::vector<std::int64_t>{150}));
  ASSERT_EQ(index->blocks.size(), session.held_blocks().size());
  for (std::size_t i = 0; i < index->blocks.size(); ++i) {
    const BlockPlace place = index->blocks[i].place;
    EXPECT_EQ(place, session.held_blocks()[i]);
    EXPECT_TRUE(index->has(place));
    std::vector<std::byte> content(static_cast<std::size_t>(format_.block_bytes(place.kind)));
    ASSERT_TRUE(format_.read_block(*file, *index, i, content).ok());
    EXPECT_EQ(std::memcmp(content.data(), session.block(place), content.size()), 0);
  }
  EXPECT_FALSE(index->has({1, 2}));  // outside of the window
  EXPECT_FALSE(index->has({2, 0}));
}

TEST_F(SessionFileTest, AnyChangedByteIsNoticed) {
  const std::string path = write(make_session(260));
  const std::string good = content_of(path);
  ASSERT_EQ(read(format_, path), true);
  const test::MemoryFile bad;
  for (std::size_t i = 0; i < good.size(); ++i) {
    std::string content = good;
    content[i] = static_cast<char>(content[i] ^ (1 << (i % 8)));
    bad.assign(content);
    ASSERT_NE(read(format_, bad.path()), true) << "byte " << i << " of " << good.size();
  }
}

TEST_F(SessionFileTest, AnyOtherSizeIsNoticed) {
  const std::string path = write(make_session(260));
  const std::string good = content_of(path);
  const test::MemoryFile bad;
  for (std::size_t size = 0; size < good.size(); ++size) {
    bad.assign(good.substr(0, size));
    ASSERT_EQ(read(format_, bad.path()), std::nullopt) << size;
  }
  bad.assign(good + '\0');
  EXPECT_EQ(read(format_, bad.path()), std::nullopt);
}

TEST_F(SessionFileTest, FilesOfOtherKindsAreRefused) {
  const std::string path = write(make_session(260));
  const KvPool f32(backend_, {full_kind(), sliding_kind(100)}, KvType::kF32, 0);
  const KvPool window(backend_, {full_kind(), sliding_kind(101)}, KvType::kF16, 0);
  for (const SessionFormat& other :
       {SessionFormat({1, 3}, pool_, kMostTokens, kVocab), SessionFormat({1, 2}, f32, kMostTokens, kVocab),
        SessionFormat({1, 2}, window, kMostTokens, kVocab)}) {
    EXPECT_EQ(read(other, path), std::nullopt);
    EXPECT_NE(other.name_prefix(), format_.name_prefix());
  }
  EXPECT_EQ(read(SessionFormat({1, 2}, pool_, 200, kVocab), path), std::nullopt);      // a shorter context
  EXPECT_EQ(read(SessionFormat({1, 2}, pool_, kMostTokens, 10), path), std::nullopt);  // fewer tokens
}

TEST_F(SessionFileTest, HeadersThatClaimTooMuchAreRefused) {
  const std::string good = content_of(write(make_session(260)));
  const test::MemoryFile bad;
  constexpr std::size_t kCounts = 56, kChecksum = 96;  // of tokens, prompt ends and blocks; of the header
  const std::uint64_t huge = ~std::uint64_t{0} / 64;
  for (const std::array<std::uint64_t, 3>& counts : std::vector<std::array<std::uint64_t, 3>>{
           {huge, 0, 0}, {260, huge, 0}, {260, 0, huge}, {0, 0, 0}, {huge, huge, huge}}) {
    std::string content = good;
    std::memcpy(content.data() + kCounts, counts.data(), sizeof counts);
    const std::uint64_t checksum = XXH3_64bits(content.data(), kChecksum);
    std::memcpy(content.data() + kChecksum, &checksum, sizeof checksum);
    bad.assign(content);
    EXPECT_EQ(read(format_, bad.path()), std::nullopt);
  }
}

// Files whose checksums are right and whose claims are not.
TEST_F(SessionFileTest, MadeUpFilesAreRefused) {
  const Session session = make_session(260);
  const auto refused = [&](auto change) {
    SessionIndex index = index_of(session);
    change(index);
    std::vector<const std::byte*> data;
    for (const SessionIndex::Block& block : index.blocks)
      data.push_back(session.block({block.place.kind, 2}));
    const std::string path = directory_.file("made-up");
    EXPECT_TRUE(format_.write(path, index, data).ok());
    EXPECT_EQ(read(format_, path), std::nullopt);
  };
  refused([](SessionIndex& index) { index.tokens[7] = kVocab; });
  refused([](SessionIndex& index) { index.tokens[7] = -1; });
  refused([](SessionIndex& index) { index.prompt_ends = {261}; });
  refused([](SessionIndex& index) { index.prompt_ends = {-1}; });
  refused([](SessionIndex& index) { index.prompt_ends = {100, 100}; });
  refused([](SessionIndex& index) { index.blocks.pop_back(); });
  refused([](SessionIndex& index) { index.blocks.erase(index.blocks.begin()); });
  refused([](SessionIndex& index) { std::swap(index.blocks[0], index.blocks[1]); });
  refused([](SessionIndex& index) { index.blocks[0].place.index = 1000; });
  refused([](SessionIndex& index) { index.blocks.push_back(index.blocks.back()); });
}

}  // namespace
}  // namespace eider::serving
