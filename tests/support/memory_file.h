// MemoryFile: a file without a disk, for readers that take a path.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <stdexcept>
#include <string>
#include <string_view>

namespace eider::test {

class MemoryFile {
 public:
  MemoryFile() : fd_(::memfd_create("input", MFD_CLOEXEC)), path_("/proc/self/fd/" + std::to_string(fd_)) {
    if (fd_ < 0) throw std::runtime_error("cannot make a file in memory");
  }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  ~MemoryFile() { ::close(fd_); }

  /// Replaces the contents. Whoever mapped the old ones must be done with them.
  void assign(std::string_view bytes) const {
    if (::ftruncate(fd_, static_cast<off_t>(bytes.size())) != 0 ||
        ::pwrite(fd_, bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
      throw std::runtime_error("cannot write a file in memory");
  }
  const std::string& path() const { return path_; }

 private:
  int fd_;
  std::string path_;
};

}  // namespace eider::test
