// File: an open file that is read and written at offsets. Every failure is one line that names the path and
// the operating system's reason.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/result.h"

namespace eider {

class File {
 public:
  enum class Mode : std::uint8_t {
    kRead,
    kUpdate,  ///< reading and writing; the file is there
    kCreate   ///< the same; an empty file is made where none is
  };
  /// Fails on what is not a regular file.
  static Result<File> open(const std::string& path, Mode mode);

  File(File&& other) noexcept;
  File& operator=(File&& other) noexcept;
  ~File();

  const std::string& path() const { return path_; }
  int descriptor() const { return descriptor_; }
  std::int64_t size() const;

  /// Fills `bytes`, or fails: a file that ends before is an error.
  Status read(std::int64_t offset, std::span<std::byte> bytes) const;
  Status write(std::int64_t offset, std::span<const std::byte> bytes) const;
  /// Returns when what was written is on the disk.
  Status sync() const;
  /// Makes the file `bytes` long and takes the disk space for them at once where the file system can.
  Status reserve(std::int64_t bytes) const;
  /// Drops what lies behind the first `bytes`.
  Status truncate(std::int64_t bytes) const;
  /// Asks for the file's lock, which one open file at a time has until it is closed or its process ends. Does
  /// not wait.
  bool try_lock() const;
  /// Whether the path still leads to this file.
  bool is_current() const;

 private:
  File(std::string path, int descriptor) : path_(std::move(path)), descriptor_(descriptor) {}
  Error failure(const char* what) const;

  std::string path_;
  int descriptor_ = -1;
};

}  // namespace eider
