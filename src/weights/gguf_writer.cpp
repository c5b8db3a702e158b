#include "weights/gguf_writer.h"

#include <fmt/format.h>

#include <algorithm>

#include "weights/byte_writer.h"
#include "weights/gguf_tensor_type.h"
#include "weights/new_file.h"

namespace eider {
namespace {

constexpr std::size_t kAlignment = 32;  // GGUF's default

std::size_t padding(std::size_t size) {
  return (kAlignment - size % kAlignment) % kAlignment;
}

/// Tensors one after the other, each padded to the alignment.
Status write_tensors(NewFile& file, const std::vector<TensorView>& tensors) {
  for (const TensorView& tensor : tensors) {
    const auto bytes = static_cast<std::size_t>(tensor.bytes());
    EIDER_TRY_STATUS(file.write_data({reinterpret_cast<const char*>(tensor.data), bytes}));
    EIDER_TRY_STATUS(file.write(std::string(padding(bytes), '\0')));
  }
  return {};
}

}  // namespace

GgufWriter& GgufWriter::key(std::string_view key, GgufType type) {
  put_string(metadata_, key);
  put(metadata_, type);
  ++keys_;
  return *this;
}

GgufWriter& GgufWriter::array(std::string_view name, GgufType type, std::size_t count) {
  key(name, GgufType::kArray);
  put(metadata_, type);
  put(metadata_, static_cast<std::uint64_t>(count));
  return *this;
}

GgufWriter& GgufWriter::string(std::string_view name, std::string_view value) {
  key(name, GgufType::kString);
  put_string(metadata_, value);
  return *this;
}

GgufWriter& GgufWriter::u32(std::string_view name, std::int64_t value) {
  key(name, GgufType::kU32);
  put(metadata_, static_cast<std::uint32_t>(value));
  return *this;
}

GgufWriter& GgufWriter::f32(std::string_view name, double value) {
  key(name, GgufType::kF32);
  put(metadata_, static_cast<float>(value));
  return *this;
}

GgufWriter& GgufWriter::boolean(std::string_view name, bool value) {
  key(name, GgufType::kBool);
  put(metadata_, static_cast<std::uint8_t>(value));
  return *this;
}

GgufWriter& GgufWriter::strings(std::string_view name, const std::vector<std::string>& values) {
  array(name, GgufType::kString, values.size());
  for (const std::string& value : values) put_string(metadata_, value);
  return *this;
}

GgufWriter& GgufWriter::i32s(std::string_view name, const std::vector<std::int32_t>& values) {
  array(name, GgufType::kI32, values.size());
  for (const std::int32_t value : values) put(metadata_, value);
  return *this;
}

std::string GgufWriter::header(const std::vector<TensorView>& tensors) const {
  std::string header = "GGUF";
  put(header, std::uint32_t{3});
  put(header, static_cast<std::uint64_t>(tensors.size()));
  put(header, keys_);
  header += metadata_;
  std::uint64_t offset = 0;
  for (const TensorView& tensor : tensors) {
    put_string(header, tensor.name);
    put(header, static_cast<std::uint32_t>(tensor.shape.rank()));
    for (int i = tensor.shape.rank() - 1; i >= 0; --i)  // GGUF lists the fastest dimension first
      put(header, static_cast<std::uint64_t>(tensor.shape[i]));
    put(header, gguf_tensor_type(tensor.format));
    put(header, offset);
    const auto bytes = static_cast<std::size_t>(tensor.bytes());
    offset += bytes + padding(bytes);
  }
  header.append(padding(header.size()), '\0');
  return header;
}

Status GgufWriter::write(const std::string& path, const std::vector<TensorView>& tensors,
                         const std::function<bool(std::int64_t, std::int64_t)>& progress) const {
  std::int64_t total = 0;
  for (const TensorView& tensor : tensors) total += tensor.bytes();
  const auto write_all = [&]() -> Status {
    EIDER_TRY(NewFile file, NewFile::create(path, total, progress));
    EIDER_TRY_STATUS(file.write(header(tensors)));
    EIDER_TRY_STATUS(write_tensors(file, tensors));
    return file.commit();
  };
  return write_all().context(path);
}

}  // namespace eider
