#include "base/huge_mapping.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <fstream>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/check.h"

namespace eider {
namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;

std::size_t round_up(std::size_t bytes) {
  return (bytes + kHugePage - 1) / kHugePage * kHugePage;
}

}  // namespace

Result<HugeMapping> HugeMapping::create(std::size_t bytes) {
  const std::size_t size = round_up(bytes == 0 ? 1 : bytes);
  void* mapping =
      ::mmap(nullptr, size + kHugePage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping == MAP_FAILED) return error("cannot allocate {} bytes: out of memory", bytes);
  auto* begin = static_cast<std::byte*>(mapping);
  const auto address = reinterpret_cast<std::uintptr_t>(begin);
  const std::size_t before = round_up(address) - address;
  if (before > 0) ::munmap(begin, before);
  if (before < kHugePage) ::munmap(begin + before + size, kHugePage - before);
  ::madvise(begin + before, size, MADV_HUGEPAGE);  // only a wish
  return HugeMapping(begin + before, size);
}

HugeMapping::HugeMapping(HugeMapping&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

HugeMapping::~HugeMapping() {
  if (data_ != nullptr) ::munmap(data_, size_);
}

Status HugeMapping::map(std::size_t offset, const File& file, std::int64_t file_offset, std::size_t bytes) {
  EIDER_CHECK(offset + bytes <= size_);
  void* mapped =
      ::mmap(data_ + offset, bytes, PROT_READ, MAP_SHARED | MAP_FIXED, file.descriptor(), file_offset);
  if (mapped == MAP_FAILED)
    return error("{}: cannot map: {}", file.path(), std::generic_category().message(errno));
  ::madvise(mapped, bytes, MADV_HUGEPAGE);
  return {};
}

Status HugeMapping::unmap(std::size_t offset, std::size_t bytes) {
  EIDER_CHECK(offset + bytes <= size_);
  void* mapped =
      ::mmap(data_ + offset, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  if (mapped == MAP_FAILED) return error("cannot allocate {} bytes: out of memory", bytes);
  ::madvise(mapped, bytes, MADV_HUGEPAGE);
  return {};
}

Status HugeMapping::replace(std::size_t offset, HugeMapping copy) {
  EIDER_CHECK(offset + copy.size_ <= size_);
  // The kernel takes the old pages away and puts the new ones there under one lock, for which a thread that
  // finds no page meanwhile waits.
  void* moved = ::mremap(copy.data_, copy.size_, copy.size_, MREMAP_MAYMOVE | MREMAP_FIXED, data_ + offset);
  if (moved == MAP_FAILED) return error("cannot move {} bytes: out of memory", copy.size_);
  copy.data_ = nullptr;
  return {};
}

void HugeMapping::populate(std::size_t offset, std::size_t bytes) const {
  EIDER_CHECK(offset + bytes <= size_);
#ifdef MADV_POPULATE_READ
  if (::madvise(data_ + offset, bytes, MADV_POPULATE_READ) == 0) return;
#endif
  constexpr std::size_t kPage = 4096;  // the smallest there is
  for (std::size_t i = offset; i < offset + bytes; i += kPage) {
    [[maybe_unused]] const std::byte touched = *static_cast<const volatile std::byte*>(data_ + i);
  }
}

void HugeMapping::populate_resident() const {
  constexpr std::size_t kPage = 4096;
  std::vector<unsigned char> present(kHugePage / kPage);
  for (std::size_t offset = 0; offset < size_; offset += kHugePage) {
    if (::mincore(data_ + offset, kHugePage, present.data()) != 0) return;
    if (std::ranges::all_of(present, [](unsigned char page) { return (page & 1) != 0; }))
      populate(offset, kHugePage);
  }
}

MappedPages mapped_pages(std::span<const std::byte> memory) {
  MappedPages pages;
  const auto begin = reinterpret_cast<std::uintptr_t>(memory.data());
  std::ifstream smaps("/proc/self/smaps");
  bool inside = false;
  for (std::string line; std::getline(smaps, line);) {
    std::uintptr_t first = 0, last = 0;
    std::int64_t kib = 0;
    if (std::sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR, &first, &last) == 2)
      inside = first < begin + memory.size() && last > begin;
    else if (!inside)
      continue;
    else if (std::sscanf(line.c_str(), "Rss: %" SCNd64, &kib) == 1)
      pages.resident += kib * 1024;
    else if (std::sscanf(line.c_str(), "FilePmdMapped: %" SCNd64, &kib) == 1 ||
             std::sscanf(line.c_str(), "AnonHugePages: %" SCNd64, &kib) == 1)
      pages.huge += kib * 1024;
  }
  return pages;
}

}  // namespace eider
