#include "tensor/buffer.h"

#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace eider {
namespace {

constexpr std::size_t kAlignment = 64;
constexpr std::size_t kHugePage = std::size_t{2} << 20;

std::size_t round_up(std::size_t bytes, std::size_t multiple) {
  return (bytes + multiple - 1) / multiple * multiple;
}

/// A mapping of whole huge pages at such an address, or null. The kernel zeroes its pages as they are
/// touched.
std::byte* map_huge(std::size_t bytes) {
  const std::size_t reserved = bytes + kHugePage;
  void* mapping = mmap(nullptr, reserved, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping == MAP_FAILED) return nullptr;
  auto* begin = static_cast<std::byte*>(mapping);
  const std::size_t before =
      round_up(reinterpret_cast<std::uintptr_t>(begin), kHugePage) - reinterpret_cast<std::uintptr_t>(begin);
  if (before > 0) munmap(begin, before);
  if (before < kHugePage) munmap(begin + before + bytes, kHugePage - before);
  madvise(begin + before, bytes, MADV_HUGEPAGE);  // only a wish
  return begin + before;
}

}  // namespace

void Buffer::Free::operator()(std::byte* data) const {
  if (mapped > 0)
    munmap(data, mapped);
  else
    std::free(data);
}

Result<Buffer> Buffer::allocate(std::size_t bytes) {
  if (bytes > SIZE_MAX - 2 * kHugePage) return error("cannot allocate {} bytes", bytes);
  const bool large = bytes >= kHugePage;
  const std::size_t rounded = round_up(bytes == 0 ? 1 : bytes, large ? kHugePage : kAlignment);
  auto* data = large ? map_huge(rounded) : static_cast<std::byte*>(std::aligned_alloc(kAlignment, rounded));
  if (data == nullptr) return error("cannot allocate {} bytes: out of memory", bytes);
  if (!large) std::memset(data, 0, rounded);
  return Buffer(data, bytes, large ? rounded : 0);
}

}  // namespace eider
