// A GGUF file of any bytes: opened as a checkpoint and as a bare vocabulary, and every tensor's ends are
// read.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "tests/support/memory_file.h"
#include "weights/checkpoint.h"
#include "weights/gguf.h"
#include "weights/gguf_vocabulary.h"

namespace {

void read_ends(std::span<const std::byte> bytes) {
  volatile std::byte sink = bytes.front();
  sink = bytes.back();
  (void)sink;
}

void read_ends(const eider::TensorView& tensor) {
  read_ends(std::span(tensor.data, static_cast<std::size_t>(tensor.bytes())));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const eider::test::MemoryFile file;
  file.assign(std::string_view(reinterpret_cast<const char*>(data), size));
  if (const auto checkpoint = eider::Checkpoint::open(file.path())) {
    for (const auto& [name, tensor] : (*checkpoint)->tensors()) read_ends(tensor);
  }
  if (const auto gguf = eider::GgufFile::parse(std::as_bytes(std::span(data, size)))) {
    for (const eider::TensorView& tensor : gguf->tensors()) read_ends(tensor);
    for (const eider::DataTensor& tensor : gguf->data_tensors()) read_ends(tensor.bytes);
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
