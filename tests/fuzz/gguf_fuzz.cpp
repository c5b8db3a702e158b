// A GGUF file of any bytes: opened as a checkpoint and as a bare vocabulary, and every tensor's ends are
// read.
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "weights/checkpoint.h"
#include "weights/gguf.h"
#include "weights/gguf_vocabulary.h"

namespace {

/// A file in memory whose path Checkpoint::open can take.
class MemoryFile {
 public:
  MemoryFile() : fd_(::memfd_create("input", MFD_CLOEXEC)), path_("/proc/self/fd/" + std::to_string(fd_)) {
    if (fd_ < 0) std::abort();
  }
  void assign(const std::uint8_t* data, std::size_t size) const {
    if (::ftruncate(fd_, static_cast<off_t>(size)) != 0) std::abort();
    if (::pwrite(fd_, data, size, 0) != static_cast<ssize_t>(size)) std::abort();
  }
  const std::string& path() const { return path_; }

 private:
  int fd_;
  std::string path_;
};

void read_ends(const eider::TensorView& tensor) {
  volatile std::byte sink = tensor.data[0];
  sink = tensor.data[tensor.bytes() - 1];
  (void)sink;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const MemoryFile file;
  file.assign(data, size);
  if (const auto checkpoint = eider::Checkpoint::open(file.path())) {
    for (const auto& [name, tensor] : (*checkpoint)->tensors()) read_ends(tensor);
  }
  if (const auto gguf = eider::GgufFile::parse(std::as_bytes(std::span(data, size)))) {
    for (const eider::TensorView& tensor : gguf->tensors()) read_ends(tensor);
    for (const auto& [key, value] : gguf->metadata()) {
      (void)value.numbers();
      (void)value.integers();
      (void)value.strings();
      (void)value.string();
    }
    (void)eider::read_vocabulary(*gguf);
  }
  return 0;
}
