#include "tools/input.h"

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

namespace eider {
namespace {

constexpr std::size_t kMaxInputBytes = std::size_t{256} << 20;

Result<std::string> read_all(std::FILE* file) {
  std::string text;
  std::array<char, 65536> piece;
  while (const std::size_t count = std::fread(piece.data(), 1, piece.size(), file)) {
    text.append(piece.data(), count);
    if (text.size() > kMaxInputBytes) return error("has more than {} MiB of text", kMaxInputBytes >> 20);
  }
  if (std::ferror(file) != 0) return error("cannot be read: {}", std::strerror(errno));
  return text;
}

}  // namespace

Result<std::string> read_file(const std::string& path) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"), std::fclose);
  if (!file) return error("{}: cannot be opened: {}", path, std::strerror(errno));
  return read_all(file.get()).context(path);
}

Result<std::string> read_stdin() {
  return read_all(stdin).context("standard input");
}

Result<std::string> read_file_or_stdin(const std::optional<std::string>& path) {
  return path && *path != "-" ? read_file(*path) : read_stdin();
}

}  // namespace eider
