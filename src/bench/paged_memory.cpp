#include "bench/paged_memory.h"

#include <sys/mman.h>

#include <cstdint>
#include <cstring>

namespace eider::bench {
namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;

std::size_t round_up(std::size_t bytes) {
  return (bytes + kHugePage - 1) / kHugePage * kHugePage;
}

}  // namespace

void PagedMemory::Unmap::operator()(std::byte*) const {
  munmap(mapping, mapped);
}

Result<PagedMemory> PagedMemory::create(std::size_t bytes, Pages pages, ThreadPool& pool) {
  const std::size_t size = round_up(bytes);
  const std::size_t mapped = size + kHugePage;  // room to begin at a huge page
  void* mapping = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping == MAP_FAILED) return error("cannot map {} bytes to measure with", mapped);
  const auto address = reinterpret_cast<std::uintptr_t>(mapping);
  auto* data = static_cast<std::byte*>(mapping) + (round_up(address) - address);
  madvise(data, size, pages == Pages::kHuge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
  pool.run([&](int thread) {
    const auto [begin, end] =
        ThreadPool::share(static_cast<std::int64_t>(size), kHugePage, thread, pool.size());
    std::memset(data + begin, 1, static_cast<std::size_t>(end - begin));
  });
  return PagedMemory(data, {mapping, mapped, size}, pages);
}

}  // namespace eider::bench
