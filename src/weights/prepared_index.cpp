#include "weights/prepared_index.h"

#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "weights/byte_cursor.h"
#include "weights/byte_writer.h"

namespace eider {
namespace {

/// Little-endian, as it lies in the file.
struct Header {
  char magic[8];
  std::uint32_t format_version;
  std::uint32_t layout;
  std::uint64_t fingerprint[2];
  std::uint32_t slice, slices;
  std::uint64_t alignment;
  std::uint64_t tensors;
  std::uint64_t index_bytes;
  std::uint64_t file_bytes;
  std::uint64_t index_checksum;
  std::uint64_t checksum;  // of what is before it
};
static_assert(sizeof(Header) == PreparedIndex::kHeaderBytes);

constexpr char kMagic[8] = {'e', 'i', 'd', 'e', 'r', 'p', 'r', 'e'};
constexpr std::uint32_t kFormatVersion = 1;
constexpr std::int64_t kTensorAlignment = 64;  // a cache line
constexpr std::int64_t kRecordAlignment = 8;
/// A mixture of 100,000 experts has an index of 20 MiB.
constexpr std::uint64_t kMostIndexBytes = std::uint64_t{256} << 20;
constexpr std::int64_t kMostBytes = std::int64_t{1} << 50;

std::int64_t round_up(std::int64_t bytes, std::int64_t multiple) {
  return (bytes + multiple - 1) / multiple * multiple;
}

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

std::uint64_t header_checksum(const Header& header) {
  return prepared_checksum(std::as_bytes(std::span(&header, 1)).first(offsetof(Header, checksum)));
}

Result<Header> read_header(std::span<const std::byte> bytes) {
  Header header;
  if (bytes.size() < sizeof header) return error("ends inside its header: it is cut off");
  std::memcpy(&header, bytes.data(), sizeof header);
  if (std::memcmp(header.magic, kMagic, sizeof kMagic) != 0) return error("is no prepared file");
  if (header.format_version != kFormatVersion)
    return error("has version {}, this eider reads {}", header.format_version, kFormatVersion);
  const bool sizes_are_sane = header.alignment >= 4096 && header.alignment <= (std::uint64_t{1} << 30) &&
                              header.alignment % 4096 == 0 && header.index_bytes <= kMostIndexBytes &&
                              header.tensors <= header.index_bytes;
  if (header.checksum != header_checksum(header) || !sizes_are_sane) return error("its header is damaged");
  return header;
}

}  // namespace

std::uint64_t prepared_checksum(std::span<const std::byte> bytes, std::uint64_t seed) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

std::string PreparedKey::text() const {
  return fmt::format("{:016x}{:016x}-l{}-s{}of{}", fingerprint[0], fingerprint[1], layout, slice, slices);
}

std::string PreparedSection::name() const {
  return layer < 0 ? "the weights outside of the layers" : fmt::format("layer {}", layer);
}

PreparedIndex::PreparedIndex(PreparedKey key, std::string source, std::vector<PreparedTensor> tensors,
                             std::int64_t alignment)
    : key_(key), source_(std::move(source)), tensors_(std::move(tensors)), alignment_(alignment) {
  EIDER_CHECK(alignment >= 4096 && alignment % 4096 == 0);
  lay_out();
}

void PreparedIndex::lay_out() {
  std::int64_t offset = 0;
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    if (sections_.empty() || sections_.back().layer != tensors_[i].layer) {
      offset = round_up(offset, alignment_);
      sections_.push_back({tensors_[i].layer, i, 0, offset, 0});
    }
    offsets_.push_back(offset);
    offset = round_up(offset + tensors_[i].bytes, kTensorAlignment);
    PreparedSection& section = sections_.back();
    ++section.count;
    section.bytes = round_up(offset - section.offset, alignment_);
  }
  offsets_.push_back(round_up(offset, alignment_));

  // The records' place depends on the length of the start alone, not on what it says.
  std::int64_t record = static_cast<std::int64_t>(make_start().size());
  for (std::size_t i = 0; i < sections_.size(); ++i) {
    record_offsets_.push_back(record);
    record += record_bytes(i);
  }
  record_offsets_.push_back(record);
  data_offset_ = round_up(record, alignment_);
  start_ = make_start();
  start_checksum_ = prepared_checksum(bytes_of(start_));
}

std::string PreparedIndex::make_start() const {
  std::string index;
  put_string(index, source_);
  for (const PreparedTensor& tensor : tensors_) {
    put_string(index, tensor.name);
    put(index, tensor.layer);
    put(index, tensor.bytes);
  }
  index.append(static_cast<std::size_t>(
                   round_up(kHeaderBytes + static_cast<std::int64_t>(index.size()), kRecordAlignment) -
                   kHeaderBytes - static_cast<std::int64_t>(index.size())),
               '\0');
  Header header{};
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  header.format_version = kFormatVersion;
  header.layout = key_.layout;
  std::copy(key_.fingerprint.begin(), key_.fingerprint.end(), header.fingerprint);
  header.slice = key_.slice;
  header.slices = key_.slices;
  header.alignment = static_cast<std::uint64_t>(alignment_);
  header.tensors = tensors_.size();
  header.index_bytes = index.size();
  header.file_bytes = static_cast<std::uint64_t>(file_bytes());
  header.index_checksum = prepared_checksum(bytes_of(index));
  header.checksum = header_checksum(header);
  return std::string(reinterpret_cast<const char*>(&header), sizeof header) + index;
}

Result<std::int64_t> PreparedIndex::start_bytes(std::span<const std::byte> header) {
  EIDER_TRY(const Header read, read_header(header));
  return kHeaderBytes + static_cast<std::int64_t>(read.index_bytes);
}

Result<PreparedIndex> PreparedIndex::parse(std::span<const std::byte> file_start) {
  EIDER_TRY(const Header header, read_header(file_start));
  const auto after = file_start.subspan(sizeof header);
  if (after.size() < header.index_bytes) return error("ends inside its index: it is cut off");
  const auto index = after.first(static_cast<std::size_t>(header.index_bytes));
  if (prepared_checksum(index) != header.index_checksum) return error("its index is damaged");

  // A right checksum says that eider wrote it, unless someone took pains: nothing below trusts it.
  ByteCursor cursor(index);
  EIDER_TRY(const std::string_view source, cursor.string("the source"));
  std::vector<PreparedTensor> tensors;
  std::int64_t bytes = 0;
  for (std::uint64_t i = 0; i < header.tensors; ++i) {
    PreparedTensor tensor;
    EIDER_TRY(tensor.name, cursor.string("a tensor's name"));
    EIDER_TRY(tensor.layer, cursor.number<std::int32_t>("a tensor's layer"));
    EIDER_TRY(tensor.bytes, cursor.number<std::int64_t>("a tensor's size"));
    if (tensor.bytes < 0 || tensor.bytes > kMostBytes - bytes) return error("its index is damaged");
    bytes += tensor.bytes;
    tensors.push_back(std::move(tensor));
  }
  const PreparedKey key{
      {header.fingerprint[0], header.fingerprint[1]}, header.layout, header.slice, header.slices};
  PreparedIndex parsed(key, std::string(source), std::move(tensors),
                       static_cast<std::int64_t>(header.alignment));
  const auto start = bytes_of(parsed.start_);
  if (start.size() > file_start.size() || !std::equal(start.begin(), start.end(), file_start.begin()))
    return error("its index is damaged");
  return parsed;
}

std::uint64_t PreparedIndex::mark(std::size_t section, std::span<const std::uint64_t> checksums) const {
  // Tied to the whole start and the place, so that no other file's or section's record passes.
  return prepared_checksum(std::as_bytes(checksums), start_checksum_ + section) |
         1;  // no empty record has it
}

std::vector<std::uint64_t> PreparedIndex::make_record(std::size_t section,
                                                      std::vector<std::uint64_t> checksums) const {
  EIDER_CHECK_EQ(checksums.size(), sections_[section].count);
  checksums.insert(checksums.begin(), mark(section, checksums));
  return checksums;
}

bool PreparedIndex::is_record(std::size_t section, std::span<const std::uint64_t> record) const {
  return record.size() == sections_[section].count + 1 && record[0] == mark(section, record.subspan(1));
}

}  // namespace eider
