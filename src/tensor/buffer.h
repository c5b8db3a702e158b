// Buffer: owned, zero-filled, 64-byte aligned memory of a fixed size.
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
    void operator()(std::byte* data) const;
  };
  Buffer(std::byte* data, std::size_t size) : data_(data), size_(size) {}

  std::unique_ptr<std::byte, Free> data_;
  std::size_t size_;
};

}  // namespace eider
