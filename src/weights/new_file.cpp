#include "weights/new_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>

namespace eider {
namespace {

std::string system_reason(int number) {
  return std::error_code(number, std::generic_category()).message();
}

}  // namespace

Result<NewFile> NewFile::create(const std::string& path, std::int64_t total, WriteProgress progress) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) return error("is a directory");
  NewFile file(path, fmt::format("{}.partial-{}", path, getpid()));
  file.total_ = total;
  file.progress_ = std::move(progress);
  file.descriptor_ = open(file.partial_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (file.descriptor_ < 0) return error("cannot create {}: {}", file.partial_, system_reason(errno));
  return file;
}

NewFile::NewFile(NewFile&& other) noexcept
    : path_(std::move(other.path_)),
      partial_(std::move(other.partial_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      done_(other.done_),
      total_(other.total_),
      progress_(std::move(other.progress_)) {}

NewFile::~NewFile() {
  if (descriptor_ < 0) return;
  close(descriptor_);
  unlink(partial_.c_str());
}

Status NewFile::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return error("cannot write: {}", system_reason(errno));
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return {};
}

Status NewFile::write_data(std::string_view bytes) {
  constexpr std::size_t kPiece = std::size_t{8} << 20;
  while (!bytes.empty()) {
    const std::string_view piece = bytes.substr(0, kPiece);
    EIDER_TRY_STATUS(write(piece));
    bytes.remove_prefix(piece.size());
    done_ += static_cast<std::int64_t>(piece.size());
    if (progress_ && !progress_(done_, total_)) return error("interrupted; nothing was kept");
  }
  return {};
}

Status NewFile::sync() {
  if (fdatasync(descriptor_) != 0) return error("cannot write: {}", system_reason(errno));
  return {};
}

Status NewFile::commit() {
  // Some file systems tell of a full disk no sooner.
  if (close(std::exchange(descriptor_, -1)) != 0 || std::rename(partial_.c_str(), path_.c_str()) != 0) {
    const std::string reason = system_reason(errno);
    unlink(partial_.c_str());
    return error("cannot write: {}", reason);
  }
  return {};
}

}  // namespace eider
