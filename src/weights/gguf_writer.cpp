#include "weights/gguf_writer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "weights/gguf_tensor_type.h"

namespace eider {
namespace {

static_assert(std::endian::native == std::endian::little, "GGUF files are little-endian");

constexpr std::size_t kAlignment = 32;  // GGUF's default

template <class T>
void put(std::string& out, T number) {
  out.append(reinterpret_cast<const char*>(&number), sizeof number);
}

void put_string(std::string& out, std::string_view text) {
  put(out, static_cast<std::uint64_t>(text.size()));
  out += text;
}

std::size_t padding(std::size_t size) {
  return (kAlignment - size % kAlignment) % kAlignment;
}

std::string system_reason(int number) {
  return std::error_code(number, std::generic_category()).message();
}

/// A file beside its final path, which takes its place on commit(), and is removed otherwise.
class NewFile {
 public:
  static Result<NewFile> create(const std::string& path) {
    std::error_code ignored;
    if (std::filesystem::is_directory(path, ignored)) return error("is a directory");
    NewFile file(path, fmt::format("{}.partial-{}", path, getpid()));
    file.descriptor_ = open(file.partial_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file.descriptor_ < 0) return error("cannot create {}: {}", file.partial_, system_reason(errno));
    return file;
  }
  NewFile(NewFile&& other) noexcept
      : path_(std::move(other.path_)),
        partial_(std::move(other.partial_)),
        descriptor_(std::exchange(other.descriptor_, -1)) {}
  NewFile& operator=(NewFile&&) = delete;
  ~NewFile() {
    if (descriptor_ < 0) return;
    close(descriptor_);
    unlink(partial_.c_str());
  }

  Status write(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t written = ::write(descriptor_, bytes.data(), bytes.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return error("cannot write: {}", system_reason(errno));
      bytes.remove_prefix(static_cast<std::size_t>(written));
    }
    return {};
  }

  Status commit() {
    // Some file systems tell of a full disk no sooner.
    if (close(std::exchange(descriptor_, -1)) != 0 || std::rename(partial_.c_str(), path_.c_str()) != 0) {
      const std::string reason = system_reason(errno);
      unlink(partial_.c_str());
      return error("cannot write: {}", reason);
    }
    return {};
  }

 private:
  NewFile(std::string path, std::string partial) : path_(std::move(path)), partial_(std::move(partial)) {}

  std::string path_;
  std::string partial_;
  int descriptor_ = -1;
};

Status write_tensors(NewFile& file, const std::vector<TensorView>& tensors, std::int64_t total,
                     const std::function<bool(std::int64_t, std::int64_t)>& progress) {
  constexpr std::size_t kPiece = std::size_t{8} << 20;
  std::int64_t done = 0;
  for (const TensorView& tensor : tensors) {
    std::string_view rest(reinterpret_cast<const char*>(tensor.data),
                          static_cast<std::size_t>(tensor.bytes()));
    const std::string gap(padding(rest.size()), '\0');
    while (!rest.empty()) {
      const std::string_view piece = rest.substr(0, kPiece);
      EIDER_TRY_STATUS(file.write(piece));
      rest.remove_prefix(piece.size());
      done += static_cast<std::int64_t>(piece.size());
      if (progress && !progress(done, total)) return error("interrupted; nothing was kept");
    }
    EIDER_TRY_STATUS(file.write(gap));
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
    EIDER_TRY(NewFile file, NewFile::create(path));
    EIDER_TRY_STATUS(file.write(header(tensors)));
    EIDER_TRY_STATUS(write_tensors(file, tensors, total, progress));
    return file.commit();
  };
  return write_all().context(path);
}

}  // namespace eider
