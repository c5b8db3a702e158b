#include "base/file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

namespace eider {
namespace {

int open_flags(File::Mode mode) {
  switch (mode) {
    case File::Mode::kRead:
      return O_RDONLY;
    case File::Mode::kUpdate:
      return O_RDWR;
    default:
      return O_RDWR | O_CREAT;
  }
}

}  // namespace

Result<File> File::open(const std::string& path, Mode mode) {
  // O_NONBLOCK: a FIFO must not keep us waiting for its writer before fstat can tell what it is.
  File file(path, ::open(path.c_str(), open_flags(mode) | O_CLOEXEC | O_NONBLOCK, 0666));
  if (file.descriptor_ < 0) return file.failure(mode == Mode::kCreate ? "create" : "open");
  struct stat status {};
  if (::fstat(file.descriptor_, &status) != 0) return file.failure("read its size");
  if (!S_ISREG(status.st_mode)) return error("{}: is not a regular file", path);
  return file;
}

File::File(File&& other) noexcept
    : path_(std::move(other.path_)), descriptor_(std::exchange(other.descriptor_, -1)) {}

File& File::operator=(File&& other) noexcept {
  if (this != &other) {
    File old(std::move(*this));
    path_ = std::move(other.path_);
    descriptor_ = std::exchange(other.descriptor_, -1);
  }
  return *this;
}

File::~File() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

Error File::failure(const char* what) const {
  return error("{}: cannot {}: {}", path_, what, std::generic_category().message(errno));
}

std::int64_t File::size() const {
  struct stat status {};
  return ::fstat(descriptor_, &status) == 0 ? status.st_size : 0;
}

Status File::read(std::int64_t offset, std::span<std::byte> bytes) const {
  while (!bytes.empty()) {
    const ssize_t count = ::pread(descriptor_, bytes.data(), bytes.size(), offset);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return failure("read");
    if (count == 0) return error("{}: ends at byte {}: it is cut off", path_, offset);
    bytes = bytes.subspan(static_cast<std::size_t>(count));
    offset += count;
  }
  return {};
}

Status File::write(std::int64_t offset, std::span<const std::byte> bytes) const {
  while (!bytes.empty()) {
    const ssize_t count = ::pwrite(descriptor_, bytes.data(), bytes.size(), offset);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return failure("write");
    bytes = bytes.subspan(static_cast<std::size_t>(count));
    offset += count;
  }
  return {};
}

Status File::sync() const {
  return ::fdatasync(descriptor_) == 0 ? Status() : failure("write");
}

Status File::reserve(std::int64_t bytes) const {
  if (::fallocate(descriptor_, 0, 0, bytes) == 0) return {};
  if (errno != EOPNOTSUPP && errno != ENOSYS) return failure("write");
  if (size() < bytes && ::ftruncate(descriptor_, bytes) != 0) return failure("write");
  return {};
}

Status File::truncate(std::int64_t bytes) const {
  return ::ftruncate(descriptor_, bytes) == 0 ? Status() : failure("write");
}

bool File::try_lock() const {
  return ::flock(descriptor_, LOCK_EX | LOCK_NB) == 0;
}

bool File::is_current() const {
  struct stat ours {
  }, theirs{};
  return ::fstat(descriptor_, &ours) == 0 && ::stat(path_.c_str(), &theirs) == 0 &&
         ours.st_ino == theirs.st_ino && ours.st_dev == theirs.st_dev;
}

}  // namespace eider
