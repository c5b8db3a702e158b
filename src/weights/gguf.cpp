#include "weights/gguf.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <unordered_set>
#include <variant>

#include "format/storage_format.h"
#include "weights/byte_cursor.h"
#include "weights/gguf_tensor_type.h"
#include "weights/printable.h"

namespace eider {
namespace {

constexpr std::string_view kMagic = "GGUF";
constexpr std::size_t kLongestKey = 65535;
constexpr std::size_t kLongestTensorName = 63;
constexpr int kMostDimensions = 4;
// The shortest entries there can be: an empty name and one byte of value; an empty name and no dimension.
constexpr std::uint64_t kLeastEntryBytes = 8 + 4 + 1;
constexpr std::uint64_t kLeastTensorBytes = 8 + 4 + 4 + 8;

/// A tensor's entry: where its data lies is known once the whole header has been read.
struct TensorEntry {
  std::string name;
  Shape shape;
  std::variant<Format, GgufDataType> type;
  std::uint64_t offset;             // in the data section
  std::uint64_t size;               // in bytes
  const std::byte* data = nullptr;  // set by place_tensors()
};

struct Header {
  std::uint32_t version;
  std::uint64_t tensor_count;
  std::uint64_t entry_count;
};

Result<Header> read_header(ByteCursor& cursor) {
  EIDER_TRY(const auto magic, cursor.take(kMagic.size(), "the magic number"));
  if (std::string_view(reinterpret_cast<const char*>(magic.data()), magic.size()) != kMagic)
    return error("not a GGUF file: it does not begin with \"GGUF\"");
  Header header{};
  EIDER_TRY(header.version, cursor.number<std::uint32_t>("the version"));
  if (header.version >= 0x10000 && (header.version & 0xffff) == 0)
    return error("a big-endian GGUF file; convert it to little-endian");
  if (header.version != 2 && header.version != 3)
    return error("GGUF version {} is not supported; supported are 2 and 3", header.version);
  EIDER_TRY(header.tensor_count, cursor.number<std::uint64_t>("the tensor count"));
  EIDER_TRY(header.entry_count, cursor.number<std::uint64_t>("the metadata count"));
  if (header.entry_count > cursor.remaining() / kLeastEntryBytes)
    return error("the header claims {} metadata entries, more than the file has room for",
                 header.entry_count);
  if (header.tensor_count > cursor.remaining() / kLeastTensorBytes)
    return error("the header claims {} tensors, more than the file has room for", header.tensor_count);
  return header;
}

/// The elements of a value: `count` of `type`, checked to lie in the file.
Result<std::span<const std::byte>> take_elements(ByteCursor& cursor, GgufType type, std::uint64_t count) {
  if (type == GgufType::kString) {
    const ByteCursor start = cursor;
    if (!cursor.skip_strings(count))
      return error("the file ends inside its {} strings: it is cut off or damaged", count);
    ByteCursor again = start;
    return again.take(cursor.position() - start.position(), "its strings");
  }
  const std::size_t bytes = gguf_type_bytes(type);
  if (bytes == 0) return error("value type {} is unknown", static_cast<std::uint32_t>(type));
  if (count > cursor.remaining() / bytes)
    return error("{} x {} do not fit in the file: it is cut off or damaged", count, gguf_type_name(type));
  return cursor.take(count * bytes, "its value");
}

Result<GgufValue> read_value(ByteCursor& cursor) {
  EIDER_TRY(auto type, cursor.number<std::uint32_t>("its type"));
  std::uint64_t count = 1;
  const bool is_array = static_cast<GgufType>(type) == GgufType::kArray;
  if (is_array) {
    EIDER_TRY(type, cursor.number<std::uint32_t>("its element type"));
    EIDER_TRY(count, cursor.number<std::uint64_t>("its element count"));
    if (static_cast<GgufType>(type) == GgufType::kArray)
      return error("an array of arrays, which GGUF does not have");
  }
  EIDER_TRY(const auto payload, take_elements(cursor, static_cast<GgufType>(type), count));
  return GgufValue(static_cast<GgufType>(type), is_array, count, payload);
}

Result<std::map<std::string_view, GgufValue>> read_metadata(ByteCursor& cursor, std::uint64_t count) {
  std::map<std::string_view, GgufValue> metadata;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::string where = fmt::format("metadata entry {} of {}", i + 1, count);
    EIDER_TRY(const auto key, cursor.string("its key").context(where));
    if (key.empty() || key.size() > kLongestKey)
      return error("{}: a key of {} bytes; 1 to {} are allowed", where, key.size(), kLongestKey);
    EIDER_TRY(auto value, read_value(cursor).context(fmt::format("metadata key {}", printable(key))));
    if (!metadata.emplace(key, value).second) return error("metadata key {} appears twice", printable(key));
  }
  return metadata;
}

Result<Shape> read_shape(ByteCursor& cursor) {
  EIDER_TRY(const auto rank, cursor.number<std::uint32_t>("its dimension count"));
  if (rank > kMostDimensions) return error("{} dimensions; at most {} are allowed", rank, kMostDimensions);
  std::array<std::int64_t, kMostDimensions> dims{};
  std::int64_t elements = 1;
  for (std::uint32_t i = 0; i < rank; ++i) {
    EIDER_TRY(const auto dim, cursor.number<std::int64_t>("its dimensions"));
    if (dim <= 0) return error("dimension {} is {}", i, dim);
    if (__builtin_mul_overflow(elements, dim, &elements)) return error("its dimensions overflow 64 bits");
    dims[rank - 1 - i] = dim;  // the file lists the fastest one first
  }
  return Shape(std::span<const std::int64_t>(dims.data(), rank));
}

Result<TensorEntry> read_tensor(ByteCursor& cursor, std::string_view name) {
  EIDER_TRY(const auto shape, read_shape(cursor));
  EIDER_TRY(const auto type, cursor.number<std::uint32_t>("its type"));
  // No type takes more than 8 bytes an element.
  if (shape.elements() > std::numeric_limits<std::int64_t>::max() / 8)
    return error("its size overflows 64 bits");
  TensorEntry tensor{.name = std::string(name), .shape = shape};
  if (const std::optional<GgufDataType> data_type = gguf_data_type(type)) {
    tensor.type = *data_type;
    tensor.size = static_cast<std::uint64_t>(shape.elements() * data_type->bytes);
  } else {
    EIDER_TRY(const auto format, gguf_tensor_format(type));
    const std::int64_t block = format_block_elems(format);
    if (shape.columns() % block != 0)
      return error("{} needs rows of a multiple of {} columns, has {}", format_name(format), block,
                   shape.columns());
    tensor.type = format;
    tensor.size = static_cast<std::uint64_t>(shape.rows() * format_row_bytes(format, shape.columns()));
  }
  EIDER_TRY(tensor.offset, cursor.number<std::uint64_t>("its offset"));
  return tensor;
}

Result<std::vector<TensorEntry>> read_tensors(ByteCursor& cursor, std::uint64_t count) {
  std::vector<TensorEntry> tensors;
  std::unordered_set<std::string_view> names;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::string where = fmt::format("tensor {} of {}", i + 1, count);
    EIDER_TRY(const auto name, cursor.string("its name").context(where));
    if (name.empty() || name.size() > kLongestTensorName)
      return error("{}: a name of {} bytes; 1 to {} are allowed", where, name.size(), kLongestTensorName);
    if (!names.insert(name).second) return error("tensor {} appears twice", printable(name));
    EIDER_TRY(auto tensor, read_tensor(cursor, name).context(fmt::format("tensor {}", printable(name))));
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

/// Points every tensor at its data, which must lie inside the file, aligned, and apart from the other
/// tensors' data.
Status place_tensors(std::vector<TensorEntry>& tensors, std::span<const std::byte> data,
                     std::uint64_t alignment) {
  for (TensorEntry& tensor : tensors) {
    if (tensor.offset % alignment != 0)
      return error("tensor {}: offset {} is not a multiple of the alignment {}", printable(tensor.name),
                   tensor.offset, alignment);
    if (tensor.offset > data.size() || tensor.size > data.size() - tensor.offset)
      return error("tensor {}: {} bytes at offset {} end past the file, whose data section has {} bytes",
                   printable(tensor.name), tensor.size, tensor.offset, data.size());
    tensor.data = data.data() + tensor.offset;
  }

  std::vector<const TensorEntry*> by_offset;
  by_offset.reserve(tensors.size());
  for (const TensorEntry& tensor : tensors) by_offset.push_back(&tensor);
  std::ranges::sort(by_offset, {}, &TensorEntry::offset);
  for (std::size_t i = 1; i < by_offset.size(); ++i) {
    if (by_offset[i]->offset < by_offset[i - 1]->offset + by_offset[i - 1]->size)
      return error("tensors {} and {} overlap", printable(by_offset[i - 1]->name),
                   printable(by_offset[i]->name));
  }
  return {};
}

Result<std::uint64_t> read_alignment(const GgufFile& file) {
  constexpr std::int64_t kDefault = 32;
  constexpr std::int64_t kMost = std::int64_t{1} << 30;
  EIDER_TRY(const auto stored, file.integer("general.alignment"));
  const std::int64_t alignment = stored.value_or(kDefault);
  // The format asks for a multiple of 8, which is also what F32 data needs.
  if (alignment < 8 || alignment > kMost || !std::has_single_bit(static_cast<std::uint64_t>(alignment)))
    return error("general.alignment is {}; it must be a power of two, at least 8", alignment);
  return static_cast<std::uint64_t>(alignment);
}

/// Names the key in an error and tells an absent key from a present one.
template <class T>
Result<std::optional<T>> optional_value(const GgufFile& file, std::string_view key,
                                        Result<T> (GgufValue::*read)() const) {
  const GgufValue* value = file.find(key);
  if (value == nullptr) return std::optional<T>();
  EIDER_TRY(auto found, (value->*read)().context(fmt::format("metadata key {}", key)));
  return std::optional<T>(std::move(found));
}

}  // namespace

Result<GgufFile> GgufFile::parse(std::span<const std::byte> bytes) {
  GgufFile file;
  ByteCursor cursor(bytes);
  EIDER_TRY(const auto header, read_header(cursor));
  file.version_ = header.version;
  EIDER_TRY(file.metadata_, read_metadata(cursor, header.entry_count));
  EIDER_TRY(const auto alignment, read_alignment(file));
  EIDER_TRY(auto tensors, read_tensors(cursor, header.tensor_count));

  const std::uint64_t data_begin = (cursor.position() + alignment - 1) / alignment * alignment;
  EIDER_TRY_STATUS(
      place_tensors(tensors, bytes.subspan(std::min<std::uint64_t>(data_begin, bytes.size())), alignment));
  file.tensors_.reserve(tensors.size());
  for (TensorEntry& tensor : tensors) {
    if (const auto* format = std::get_if<Format>(&tensor.type))
      file.tensors_.push_back({std::move(tensor.name), *format, tensor.shape, tensor.data});
    else
      file.data_tensors_.push_back({std::move(tensor.name), std::get<GgufDataType>(tensor.type).name,
                                    tensor.shape, std::span(tensor.data, tensor.size)});
  }
  return file;
}

const GgufValue* GgufFile::find(std::string_view key) const {
  const auto found = metadata_.find(key);
  return found == metadata_.end() ? nullptr : &found->second;
}

Result<std::optional<std::int64_t>> GgufFile::integer(std::string_view key) const {
  return optional_value(*this, key, &GgufValue::integer);
}

Result<std::optional<double>> GgufFile::number(std::string_view key) const {
  return optional_value(*this, key, &GgufValue::number);
}

Result<std::optional<bool>> GgufFile::boolean(std::string_view key) const {
  return optional_value(*this, key, &GgufValue::boolean);
}

Result<std::optional<std::string_view>> GgufFile::string(std::string_view key) const {
  return optional_value(*this, key, &GgufValue::string);
}

}  // namespace eider
