// PagedMemory: memory whose page size is asked for, to measure what the pages change.
#pragma once

#include <cstddef>
#include <memory>

#include "base/result.h"
#include "base/thread_pool.h"

namespace eider::bench {

enum class Pages { kSmall, kHuge };  // 4 KiB, 2 MiB

class PagedMemory {
 public:
  /// Maps `bytes` (rounded up to 2 MiB) and touches them on all threads of `pool`, each its share. Huge pages
  /// are a wish that the kernel may not grant.
  static Result<PagedMemory> create(std::size_t bytes, Pages pages, ThreadPool& pool);

  std::byte* data() const { return data_.get(); }
  std::size_t size() const { return data_.get_deleter().size; }
  Pages pages() const { return pages_; }

 private:
  struct Unmap {
    void* mapping;
    std::size_t mapped;
    std::size_t size;
    void operator()(std::byte*) const;
  };
  PagedMemory(std::byte* data, Unmap unmap, Pages pages) : data_(data, unmap), pages_(pages) {}

  std::unique_ptr<std::byte, Unmap> data_;
  Pages pages_;
};

}  // namespace eider::bench
