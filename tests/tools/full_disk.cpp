// A disk that is full: preloaded (LD_PRELOAD) into the program, it fails every write to a file of the weight
// cache from the EIDER_FAIL_AT-th on with ENOSPC. Taking space for a file and waiting for the disk are writes
// too. With EIDER_NO_RESERVE the file system cannot take space ahead, as some cannot.
#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace {

bool is_cache_file(int descriptor) {
  char link[64], path[4096];
  std::snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
  const ssize_t length = readlink(link, path, sizeof path);
  return length > 0 && std::string_view(path, static_cast<std::size_t>(length)).ends_with(".prepared");
}

/// Whether this write fails.
bool fails(int descriptor) {
  static std::atomic<int> writes = 0;
  const char* first = std::getenv("EIDER_FAIL_AT");
  if (first == nullptr || !is_cache_file(descriptor) || ++writes < std::atoi(first)) return false;
  errno = ENOSPC;
  return true;
}

template <class Function>
Function next(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" {

ssize_t pwrite(int descriptor, const void* bytes, size_t count, off_t offset) {
  if (fails(descriptor)) return -1;
  return next<ssize_t (*)(int, const void*, size_t, off_t)>("pwrite")(descriptor, bytes, count, offset);
}

int fdatasync(int descriptor) {
  return fails(descriptor) ? -1 : next<int (*)(int)>("fdatasync")(descriptor);
}

int fallocate(int descriptor, int mode, off_t offset, off_t length) {
  if (std::getenv("EIDER_NO_RESERVE") != nullptr) {
    errno = EOPNOTSUPP;
    return -1;
  }
  if (fails(descriptor)) return -1;
  return next<int (*)(int, int, off_t, off_t)>("fallocate")(descriptor, mode, offset, length);
}

int ftruncate(int descriptor, off_t length) noexcept {
  return fails(descriptor) ? -1 : next<int (*)(int, off_t)>("ftruncate")(descriptor, length);
}

}  // extern "C"
