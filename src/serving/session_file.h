// SessionFile: a session on disk, so that a conversation goes on after others took its memory, or after a
// restart. docs/FORMATS.md has the picture. Here is one file's format alone; session_disk.h has the policy.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/result.h"
#include "base/token_id.h"
#include "runtime/kv_pool.h"
#include "runtime/session.h"

namespace eider::serving {

/// A scope, told apart from others without being known.
using ScopeHash = std::array<std::uint64_t, 2>;
ScopeHash hash_scope(std::string_view scope);

/// What a session is, beside its blocks' contents.
struct SessionIndex {
  struct Block {
    BlockPlace place;
    std::uint64_t checksum = 0;  ///< XXH3 of its content
  };
  ScopeHash scope{};
  std::vector<TokenId> tokens;
  std::vector<std::int64_t> prompt_ends;
  std::vector<Block> blocks;  ///< by kind, then index

  bool has(BlockPlace place) const;
};

/// A model's session files: what all of them must agree on.
class SessionFormat {
 public:
  /// `model`: fingerprint of the checkpoint. `pool`: the kinds and sizes of blocks, and their type.
  SessionFormat(std::array<std::uint64_t, 2> model, const KvPool& pool, std::int64_t max_context,
                std::int64_t vocab_size);

  const std::vector<KvKind>& kinds() const { return kinds_; }
  std::int64_t block_bytes(int kind) const { return block_bytes_[static_cast<std::size_t>(kind)]; }
  std::int64_t file_bytes(const SessionIndex& index) const;

  /// "0123456789abcdef-": the files of this format begin so.
  std::string name_prefix() const;
  /// The same session has always the same name.
  std::string file_name(const SessionIndex& index) const;

  /// Writes a whole file beside `path`, and moves it there when it is on the disk. `data`: the blocks'
  /// contents, in their order; their checksums are filled in. Errors do not name the path.
  Status write(const std::string& path, SessionIndex& index, std::span<const std::byte* const> data) const;

  /// What the file says of itself. Every claim is checked against the checksums, the format and the file's
  /// size; errors do not name the file.
  Result<SessionIndex> read_index(const File& file) const;
  /// Fills `to` with block number `block`'s content. Fails where it is not what was written.
  Status read_block(const File& file, const SessionIndex& index, std::size_t block,
                    std::span<std::byte> to) const;

 private:
  std::string make_start(const SessionIndex& index) const;
  std::int64_t data_offset(const SessionIndex& index) const;
  Status check(const SessionIndex& index) const;

  std::array<std::uint64_t, 2> model_;
  std::vector<KvKind> kinds_;
  std::vector<std::int64_t> block_bytes_;
  std::int64_t max_context_;
  std::int64_t vocab_size_;
  std::uint64_t layout_;  // of the blocks: a hash of the kinds and the type
};

}  // namespace eider::serving
