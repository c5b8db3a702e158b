// Buffer: owned, zero-filled memory of a fixed size, aligned to 64 bytes; large ones lie in pages of their
// own, of 2 MiB where the kernel has them, because weights are read from end to end once a token.
#pragma once

#include <cstddef>
#include <memory>

#include "base/result.h"

namespace eider {

class Buffer {
 public:
  /// Fails with one line when the memory cannot be had.
  static Result<Buffer> allocate(std::size_t bytes);

  std::byte* data() { return data_.get(); }
  const std::byte* data() const { return data_.get(); }
  std::size_t size() const { return size_; }

 private:
  struct Free {
    std::size_t mapped = 0;  // bytes of a mapping of its own; 0: from the heap
    void operator()(std::byte* data) const;
  };
  Buffer(std::byte* data, std::size_t size, std::size_t mapped) : data_(data, Free{mapped}), size_(size) {}

  std::unique_ptr<std::byte, Free> data_;
  std::size_t size_;
};

}  // namespace eider
