#include "tensor/buffer.h"

#include <cstdlib>
#include <cstring>

namespace eider {

void Buffer::Free::operator()(std::byte* data) const {
  std::free(data);
}

Result<Buffer> Buffer::allocate(std::size_t bytes) {
  constexpr std::size_t kAlignment = 64;
  if (bytes > SIZE_MAX - kAlignment) return error("cannot allocate {} bytes", bytes);
  const std::size_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  auto* data = static_cast<std::byte*>(std::aligned_alloc(kAlignment, rounded == 0 ? kAlignment : rounded));
  if (data == nullptr) return error("cannot allocate {} bytes: out of memory", bytes);
  std::memset(data, 0, rounded);
  return Buffer(data, bytes);
}

}  // namespace eider
