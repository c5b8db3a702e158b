// MappedFile: a file mapped read-only. Checkpoints are views into it. It knows nothing of what the bytes
// mean.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/result.h"

namespace eider {

class MappedFile {
 public:
  /// Maps the whole of a regular file. Errors name the path and the operating system's reason.
  static Result<MappedFile> open(const std::string& path);

  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  /// The bytes; valid while this object lives, also after it was moved from elsewhere. A file that shrinks
  /// while mapped raises SIGBUS on access, as with every memory map.
  std::span<const std::byte> bytes() const { return {data_, size_}; }
  const std::string& path() const { return path_; }
  /// When it was last written, in nanoseconds since 1970, as it was opened.
  std::int64_t modified() const { return modified_; }

 private:
  MappedFile(std::string path, std::int64_t modified, const std::byte* data, std::size_t size)
      : path_(std::move(path)), modified_(modified), data_(data), size_(size) {}

  std::string path_;
  std::int64_t modified_ = 0;
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

/// Asks the operating system to start reading the pages of `mapped`, a part of a mapped file, from the disk.
void advise_read_ahead(std::span<const std::byte> mapped);

/// Gives the memory of `mapped`, a part of a mapped file, back, as far as it is whole pages. It may still be
/// read: pages come back from the page cache or the disk.
void drop_pages(std::span<const std::byte> mapped);

}  // namespace eider
