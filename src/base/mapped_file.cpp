#include "base/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <system_error>
#include <utility>

namespace eider {
namespace {

class FileDescriptor {
 public:
  explicit FileDescriptor(int fd) : fd_(fd) {}
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  ~FileDescriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }

 private:
  int fd_;
};

Error system_error(const std::string& path, const char* what) {
  return error("{}: cannot {}: {}", path, what, std::generic_category().message(errno));
}

}  // namespace

Result<MappedFile> MappedFile::open(const std::string& path) {
  // O_NONBLOCK: a FIFO must not keep us waiting for its writer before fstat can tell what it is.
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) return system_error(path, "open");
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) return system_error(path, "read its size");
  if (S_ISDIR(status.st_mode)) return error("{}: is a directory, not a file", path);
  if (!S_ISREG(status.st_mode)) return error("{}: is not a regular file", path);

  const auto size = static_cast<std::size_t>(status.st_size);
  const std::int64_t modified = std::int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec;
  if (size == 0) return MappedFile(path, modified, nullptr, 0);  // mmap refuses an empty range
  void* data = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, file.get(), 0);
  if (data == MAP_FAILED) return system_error(path, "map");
  return MappedFile(path, modified, static_cast<const std::byte*>(data), size);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)),
      modified_(other.modified_),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  if (this != &other) {
    MappedFile old(std::move(*this));
    path_ = std::move(other.path_);
    modified_ = other.modified_;
    data_ = std::exchange(other.data_, nullptr);
    size_ = std::exchange(other.size_, 0);
  }
  return *this;
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

void advise_read_ahead(std::span<const std::byte> mapped) {
  if (mapped.empty()) return;
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t into_page = reinterpret_cast<std::uintptr_t>(mapped.data()) % page;
  void* first_page = const_cast<std::byte*>(mapped.data()) - into_page;
  // Advice only: what the kernel makes of it changes no result, so its answer is not looked at.
  (void)::madvise(first_page, into_page + mapped.size(), MADV_WILLNEED);
}

void drop_pages(std::span<const std::byte> mapped) {
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<std::uintptr_t>(mapped.data());
  const std::size_t to_page = (page - begin % page) % page;
  if (mapped.size() < to_page + page) return;
  const std::span<const std::byte> inner = mapped.subspan(to_page, (mapped.size() - to_page) / page * page);
  (void)::madvise(const_cast<std::byte*>(inner.data()), inner.size(), MADV_DONTNEED);
}

}  // namespace eider
