#include "weights/safetensors.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "weights/byte_cursor.h"
#include "weights/printable.h"
#include "weights/safetensors_header.h"

namespace eider {
namespace {

constexpr std::uint64_t kLongestHeader = 100'000'000;  // the format's own limit
constexpr std::size_t kMostDimensions = 4;

struct Dtype {
  std::string_view name;
  std::uint64_t bits;  // of one element
};

constexpr Dtype kDtypes[] = {{"F32", 32},    {"F16", 16},    {"BF16", 16}, {"F64", 64},    {"F8_E4M3", 8},
                             {"F8_E5M2", 8}, {"F8_E8M0", 8}, {"BOOL", 8},  {"U8", 8},      {"I8", 8},
                             {"U16", 16},    {"I16", 16},    {"U32", 32},  {"I32", 32},    {"U64", 64},
                             {"I64", 64},    {"C64", 64},    {"F4", 4},    {"F6_E2M3", 6}, {"F6_E3M2", 6}};

std::optional<std::uint64_t> dtype_bits(std::string_view name) {
  const auto* found = std::ranges::find(kDtypes, name, &Dtype::name);
  if (found == std::end(kDtypes)) return std::nullopt;
  return found->bits;
}

/// Bytes of a tensor; nothing when they overflow or a last byte would be shared.
std::optional<std::uint64_t> tensor_bytes(const std::vector<std::uint64_t>& shape, std::uint64_t bits) {
  std::uint64_t total = bits;
  for (const std::uint64_t dim : shape) {
    // Dimensions are kept as signed numbers, also where another one is 0.
    if (dim > INT64_MAX || __builtin_mul_overflow(total, dim, &total)) return std::nullopt;
  }
  if (total % 8 != 0) return std::nullopt;
  return total / 8;
}

Result<SafetensorsFile::Entry> check_entry(SafetensorsHeaderEntry raw, std::span<const std::byte> data) {
  const std::optional<std::uint64_t> bits = dtype_bits(raw.dtype);
  if (!bits) return error("dtype {} is unknown", printable(raw.dtype));
  if (raw.shape.size() > kMostDimensions)
    return error("{} dimensions; at most {} are supported", raw.shape.size(), kMostDimensions);
  if (raw.data_offsets.size() != 2)
    return error("data_offsets has {} numbers instead of 2", raw.data_offsets.size());
  const std::uint64_t begin = raw.data_offsets[0];
  const std::uint64_t end = raw.data_offsets[1];
  if (begin > end || end > data.size())
    return error("data_offsets {} to {} lie outside the data section of {} bytes", begin, end, data.size());

  std::array<std::int64_t, kMostDimensions> dims{};
  std::ranges::copy(raw.shape, dims.begin());
  const std::optional<std::uint64_t> bytes = tensor_bytes(raw.shape, *bits);
  if (!bytes) return error("its shape overflows, or does not end at a whole byte");
  const Shape shape(std::span<const std::int64_t>(dims.data(), raw.shape.size()));
  if (end - begin != *bytes)
    return error("{} {} takes {} bytes, but data_offsets span {}", raw.dtype, shape.text(), *bytes,
                 end - begin);
  return SafetensorsFile::Entry{std::move(raw.dtype), shape, data.subspan(begin, end - begin)};
}

/// Tensors must cover the data section without holes or overlap.
Status check_coverage(const std::map<std::string, SafetensorsFile::Entry, std::less<>>& entries,
                      std::span<const std::byte> data) {
  using Named = std::pair<const std::string, SafetensorsFile::Entry>;
  std::vector<const Named*> by_position;
  by_position.reserve(entries.size());
  for (const Named& entry : entries) by_position.push_back(&entry);
  std::ranges::sort(by_position, [](const Named* a, const Named* b) {
    return std::pair(a->second.bytes.data(), a->second.bytes.size()) <
           std::pair(b->second.bytes.data(), b->second.bytes.size());
  });
  const std::byte* covered = data.data();
  for (const Named* entry : by_position) {
    if (entry->second.bytes.data() < covered)
      return error("tensor {} overlaps another one", printable(entry->first));
    if (entry->second.bytes.data() > covered)
      return error("a hole of {} bytes before tensor {}", entry->second.bytes.data() - covered,
                   printable(entry->first));
    covered += entry->second.bytes.size();
  }
  if (covered != data.data() + data.size())
    return error("{} bytes after the last tensor belong to none", data.data() + data.size() - covered);
  return {};
}

}  // namespace

Result<std::map<std::string, SafetensorsFile::Entry, std::less<>>> SafetensorsFile::parse(
    std::span<const std::byte> bytes) {
  ByteCursor cursor(bytes);
  EIDER_TRY(const auto header_bytes, cursor.number<std::uint64_t>("the header's length"));
  if (header_bytes > kLongestHeader)
    return error("not a safetensors file: a header of {} bytes; at most {} are allowed", header_bytes,
                 kLongestHeader);
  EIDER_TRY(const auto header, cursor.take(header_bytes, "the header"));
  const std::string_view json(reinterpret_cast<const char*>(header.data()), header.size());
  if (!json.starts_with('{')) return error("not a safetensors file: its header does not begin with {{");
  EIDER_TRY(auto raw_entries, read_safetensors_header(json).context("header"));

  const std::span<const std::byte> data = bytes.subspan(cursor.position());
  std::map<std::string, Entry, std::less<>> entries;
  while (!raw_entries.empty()) {
    auto raw = raw_entries.extract(raw_entries.begin());
    EIDER_TRY(
        auto entry,
        check_entry(std::move(raw.mapped()), data).context(fmt::format("tensor {}", printable(raw.key()))));
    entries.emplace_hint(entries.end(), std::move(raw.key()), std::move(entry));
  }
  EIDER_TRY_STATUS(check_coverage(entries, data));
  return entries;
}

Result<SafetensorsFile> SafetensorsFile::open(const std::string& path) {
  EIDER_TRY(auto file, MappedFile::open(path));
  EIDER_TRY(auto entries, parse(file.bytes()).context(path));
  return SafetensorsFile(std::move(file), std::move(entries));
}

const SafetensorsFile::Entry* SafetensorsFile::find(std::string_view name) const {
  const auto found = entries_.find(name);
  return found == entries_.end() ? nullptr : &found->second;
}

}  // namespace eider
