#include "serving/session_file.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <tuple>
#include <utility>

#include "base/check.h"
#include "ops/numerics.h"
#include "weights/byte_cursor.h"
#include "weights/byte_writer.h"
#include "weights/new_file.h"

namespace eider::serving {
namespace {

constexpr std::string_view kMagic = "eiderkvs";
constexpr std::uint32_t kVersion = 1;
constexpr std::int64_t kHeaderBytes = 104;
constexpr std::int64_t kAlignment = 4096;
constexpr std::size_t kMostPromptEnds = 1024;

std::uint64_t checksum(std::span<const std::byte> bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}
std::uint64_t checksum(std::string_view bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

std::array<std::uint64_t, 2> checksum128(std::string_view bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return {hash.low64, hash.high64};
}

auto order(const BlockPlace& place) {
  return std::tuple(place.kind, place.index);
}

}  // namespace

ScopeHash hash_scope(std::string_view scope) {
  return checksum128(scope);
}

bool SessionIndex::has(BlockPlace place) const {
  const auto found = std::lower_bound(blocks.begin(), blocks.end(), place,
                                      [](const Block& a, BlockPlace b) { return order(a.place) < order(b); });
  return found != blocks.end() && found->place == place;
}

SessionFormat::SessionFormat(std::array<std::uint64_t, 2> model, const KvPool& pool, std::int64_t max_context,
                             std::int64_t vocab_size)
    : model_(model), kinds_(pool.kinds()), max_context_(max_context), vocab_size_(vocab_size) {
  std::string layout;
  put(layout, static_cast<std::uint32_t>(pool.type()));
  for (int kind = 0; kind < static_cast<int>(kinds_.size()); ++kind) {
    const KvKind& k = kinds_[static_cast<std::size_t>(kind)];
    for (const std::int64_t number : {k.layers, k.num_key_value_heads, k.head_dim, k.window})
      put(layout, number);
    block_bytes_.push_back(pool.block_bytes(kind));
  }
  layout_ = checksum(layout);
}

std::int64_t SessionFormat::data_offset(const SessionIndex& index) const {
  const auto bytes = static_cast<std::int64_t>(4 * index.tokens.size() + 8 * index.prompt_ends.size() +
                                               16 * index.blocks.size());
  return (kHeaderBytes + bytes + kAlignment - 1) / kAlignment * kAlignment;
}

std::int64_t SessionFormat::file_bytes(const SessionIndex& index) const {
  std::int64_t bytes = data_offset(index);
  for (const SessionIndex::Block& block : index.blocks) bytes += block_bytes(block.place.kind);
  return bytes;
}

std::string SessionFormat::name_prefix() const {
  std::string key;
  put(key, kNumericsVersion);
  put(key, model_);
  put(key, layout_);
  return fmt::format("{:016x}-", checksum(key));
}

std::string SessionFormat::file_name(const SessionIndex& index) const {
  std::string content;
  put(content, index.scope);
  for (const TokenId id : index.tokens) put(content, id);
  const auto hash = checksum128(content);
  return fmt::format("{}{:016x}{:016x}.eiderkv", name_prefix(), hash[1], hash[0]);
}

std::string SessionFormat::make_start(const SessionIndex& index) const {
  std::string body;
  for (const TokenId id : index.tokens) put(body, static_cast<std::int32_t>(id));
  for (const std::int64_t end : index.prompt_ends) put(body, end);
  for (const SessionIndex::Block& block : index.blocks) {
    put(body, static_cast<std::uint32_t>(block.place.kind));
    put(body, static_cast<std::uint32_t>(block.place.index));
    put(body, block.checksum);
  }
  body.resize(static_cast<std::size_t>(data_offset(index) - kHeaderBytes));

  std::string start(kMagic);
  put(start, kVersion);
  put(start, kNumericsVersion);
  put(start, model_);
  put(start, layout_);
  put(start, index.scope);
  for (const std::size_t count : {index.tokens.size(), index.prompt_ends.size(), index.blocks.size()})
    put(start, static_cast<std::uint64_t>(count));
  put(start, static_cast<std::uint64_t>(file_bytes(index)));
  put(start, checksum(body));
  put(start, checksum(start));
  EIDER_CHECK_EQ(static_cast<std::int64_t>(start.size()), kHeaderBytes);
  return start + body;
}

Status SessionFormat::write(const std::string& path, SessionIndex& index,
                            std::span<const std::byte* const> data) const {
  EIDER_CHECK_EQ(data.size(), index.blocks.size());
  const auto content = [&](std::size_t block) {
    return std::span(data[block], static_cast<std::size_t>(block_bytes(index.blocks[block].place.kind)));
  };
  for (std::size_t i = 0; i < data.size(); ++i) index.blocks[i].checksum = checksum(content(i));
  EIDER_TRY(NewFile file, NewFile::create(path));
  EIDER_TRY_STATUS(file.write(make_start(index)));
  for (std::size_t i = 0; i < data.size(); ++i) {
    EIDER_TRY_STATUS(file.write({reinterpret_cast<const char*>(content(i).data()), content(i).size()}));
  }
  EIDER_TRY_STATUS(file.sync());
  return file.commit();
}

Result<SessionIndex> SessionFormat::read_index(const File& file) const {
  std::array<std::byte, kHeaderBytes> header;
  EIDER_TRY_STATUS(file.read(0, header));
  ByteCursor cursor(header);
  EIDER_TRY(const auto magic, cursor.take(kMagic.size(), "the magic"));
  EIDER_TRY(const auto version, cursor.number<std::uint32_t>("the version"));
  EIDER_TRY(const auto numerics, cursor.number<std::uint32_t>("the numerics version"));
  using Pair = std::array<std::uint64_t, 2>;
  EIDER_TRY(const auto model, cursor.number<Pair>("the model"));
  EIDER_TRY(const auto layout, cursor.number<std::uint64_t>("the layout"));
  SessionIndex index;
  EIDER_TRY(index.scope, cursor.number<Pair>("the scope"));
  EIDER_TRY(const auto tokens, cursor.number<std::uint64_t>("the number of tokens"));
  EIDER_TRY(const auto prompt_ends, cursor.number<std::uint64_t>("the number of prompt ends"));
  EIDER_TRY(const auto blocks, cursor.number<std::uint64_t>("the number of blocks"));
  EIDER_TRY(const auto claimed_bytes, cursor.number<std::uint64_t>("the size"));
  EIDER_TRY(const auto body_checksum, cursor.number<std::uint64_t>("the index's checksum"));
  EIDER_TRY(const auto header_checksum, cursor.number<std::uint64_t>("the header's checksum"));

  if (std::memcmp(magic.data(), kMagic.data(), kMagic.size()) != 0) return error("is no session file");
  if (checksum(std::span(header).first(kHeaderBytes - 8)) != header_checksum)
    return error("its header is damaged");
  if (version != kVersion) return error("is of version {}, not {}", version, kVersion);
  if (numerics != kNumericsVersion || model != model_ || layout != layout_)
    return error("is of another model, numerics version or KV type");
  if (tokens < 1 || tokens > static_cast<std::uint64_t>(max_context_))
    return error("has {} tokens; between 1 and {} fit the context", tokens, max_context_);
  const std::uint64_t most_blocks =
      kinds_.size() * static_cast<std::uint64_t>(blocks_for(static_cast<std::int64_t>(tokens)));
  if (prompt_ends > kMostPromptEnds || blocks > most_blocks)
    return error("has {} prompt ends and {} blocks for {} tokens", prompt_ends, blocks, tokens);

  index.tokens.resize(tokens);
  index.prompt_ends.resize(prompt_ends);
  index.blocks.resize(blocks);
  const std::int64_t body_bytes = data_offset(index) - kHeaderBytes;
  if (file.size() < kHeaderBytes + body_bytes) return error("is cut off");
  std::vector<std::byte> body(static_cast<std::size_t>(body_bytes));
  EIDER_TRY_STATUS(file.read(kHeaderBytes, body));
  if (checksum(body) != body_checksum) return error("its index is damaged");
  ByteCursor entries(body);
  for (TokenId& id : index.tokens) {
    EIDER_TRY(id, entries.number<std::int32_t>("the tokens"));
  }
  for (std::int64_t& end : index.prompt_ends) {
    EIDER_TRY(end, entries.number<std::int64_t>("the prompt ends"));
  }
  for (SessionIndex::Block& block : index.blocks) {
    EIDER_TRY(const auto kind, entries.number<std::uint32_t>("the blocks"));
    EIDER_TRY(const auto number, entries.number<std::uint32_t>("the blocks"));
    EIDER_TRY(block.checksum, entries.number<std::uint64_t>("the blocks"));
    if (kind >= kinds_.size()) return error("has a block of a kind that the model does not have");
    block.place = {static_cast<int>(kind), number};
  }
  EIDER_TRY_STATUS(check(index));
  const std::int64_t bytes = file_bytes(index);
  if (static_cast<std::uint64_t>(bytes) != claimed_bytes || file.size() != bytes)
    return error("has {} bytes, not {}", file.size(), bytes);
  return index;
}

// What checksums cannot tell from a file that someone made up.
Status SessionFormat::check(const SessionIndex& index) const {
  const auto length = static_cast<std::int64_t>(index.tokens.size());
  for (const TokenId id : index.tokens)
    if (id < 0 || id >= vocab_size_) return error("has a token outside the vocabulary");
  std::int64_t last = -1;
  for (const std::int64_t end : index.prompt_ends) {
    if (end <= last || end > length) return error("has prompt ends out of order");
    last = end;
  }
  for (std::size_t i = 0; i < index.blocks.size(); ++i) {
    const BlockPlace& place = index.blocks[i].place;
    if (place.index >= blocks_for(length) || (i > 0 && order(place) <= order(index.blocks[i - 1].place)))
      return error("has blocks out of order");
  }
  if (resumable_length(kinds_, length, [&](BlockPlace place) { return index.has(place); }) != length)
    return error("lacks blocks");
  return {};
}

Status SessionFormat::read_block(const File& file, const SessionIndex& index, std::size_t block,
                                 std::span<std::byte> to) const {
  std::int64_t offset = data_offset(index);
  for (std::size_t i = 0; i < block; ++i) offset += block_bytes(index.blocks[i].place.kind);
  EIDER_TRY_STATUS(file.read(offset, to));
  if (checksum(to) != index.blocks[block].checksum) return error("the content of block {} is damaged", block);
  return {};
}

}  // namespace eider::serving
