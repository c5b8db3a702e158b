// HugeMapping: memory that begins at an address of a 2 MiB page, parts of which may be a file's pages. What
// lies at an offset stays at its address, whichever of the two it is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/file.h"
#include "base/result.h"

namespace eider {

class HugeMapping {
 public:
  /// Zero-filled memory of its own; pages are taken as they are touched, of 2 MiB where the kernel has them.
  static Result<HugeMapping> create(std::size_t bytes);

  HugeMapping(HugeMapping&& other) noexcept;
  HugeMapping& operator=(HugeMapping&&) = delete;
  ~HugeMapping();

  /// Lays bytes [file_offset, file_offset + bytes) of `file` over those at `offset`, read-only; all three are
  /// multiples of the page size. The kernel is asked for pages of 2 MiB. A file that shrinks while mapped
  /// raises SIGBUS on access, as with every memory map.
  Status map(std::size_t offset, const File& file, std::int64_t file_offset, std::size_t bytes);

  /// Lays memory of its own over those bytes again.
  Status unmap(std::size_t offset, std::size_t bytes);
  /// Puts `copy`, which holds the same bytes, in place of those at `offset`. Other threads may read them
  /// meanwhile.
  Status replace(std::size_t offset, HugeMapping copy);
  /// Has the pages of those bytes mapped, reading them from the disk where they are not in memory.
  void populate(std::size_t offset, std::size_t bytes) const;

  /// The same, of pages that are in memory already; reads nothing from the disk.
  void populate_resident() const;

  std::span<std::byte> bytes() const { return {data_, size_}; }

 private:
  HugeMapping(std::byte* data, std::size_t size) : data_(data), size_(size) {}

  std::byte* data_;
  std::size_t size_;
};

/// How the kernel has mapped a stretch of memory, in bytes; memory of the process's own next to it, which the
/// kernel may keep together with it, counts too.
struct MappedPages {
  std::int64_t resident = 0;
  std::int64_t huge = 0;  ///< in pages of 2 MiB
};
MappedPages mapped_pages(std::span<const std::byte> memory);

}  // namespace eider
