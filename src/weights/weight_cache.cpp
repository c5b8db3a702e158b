#include "weights/weight_cache.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/format_bytes.h"
#include "weights/prepared_file.h"

namespace eider {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSuffix = ".prepared";

CacheEntry describe(const std::string& path) {
  CacheEntry entry{.path = path};
  struct stat status {};
  if (::stat(path.c_str(), &status) == 0) {
    entry.bytes = std::int64_t{status.st_blocks} * 512;
    entry.last_used = status.st_mtim.tv_sec;
  }
  const Result<PreparedFile> file = PreparedFile::open(path);
  if (!file.ok()) {
    entry.problem = file.error().message();
    return entry;
  }
  entry.key = file->index().key();
  entry.source = file->index().source();
  entry.finished = file->finished();
  entry.sections = file->index().sections().size();
  return entry;
}

}  // namespace

std::string WeightCache::path_of(const PreparedKey& key) const {
  return (fs::path(directory_) / (key.text() + kSuffix)).string();
}

std::vector<CacheEntry> WeightCache::list() const {
  std::vector<CacheEntry> entries;
  std::error_code failed;
  for (fs::directory_iterator it(directory_, failed), end; !failed && it != end; it.increment(failed)) {
    std::error_code ignored;
    if (it->path().extension() == kSuffix && it->is_regular_file(ignored))
      entries.push_back(describe(it->path().string()));
  }
  std::ranges::sort(entries, [](const CacheEntry& a, const CacheEntry& b) {
    return std::pair(b.last_used, a.path) < std::pair(a.last_used, b.path);
  });
  return entries;
}

Status WeightCache::make_room(const PreparedIndex& index) const {
  std::error_code failed;
  fs::create_directories(directory_, failed);
  if (failed) return error("{}: cannot make this directory: {}", directory_, failed.message());
  const std::string own = path_of(index.key());
  std::vector<CacheEntry> others = list();
  std::erase_if(others, [&](const CacheEntry& entry) {
    const bool stale = !entry.source.empty() && entry.source == index.source() &&
                       entry.key.fingerprint != index.key().fingerprint;
    return entry.path == own || (stale && remove_prepared(entry.path));
  });

  struct stat status {};
  std::int64_t taken = ::stat(own.c_str(), &status) == 0 ? std::int64_t{status.st_blocks} * 512 : 0;
  std::int64_t total = index.file_bytes();
  for (const CacheEntry& entry : others) {
    taken += entry.bytes;
    total += entry.bytes;
  }
  const fs::space_info space = fs::space(directory_, failed);
  if (failed) return error("{}: cannot tell its free space: {}", directory_, failed.message());
  const std::int64_t budget = budget_.value_or((static_cast<std::int64_t>(space.available) + taken) / 2);
  if (index.file_bytes() > budget)
    return error(
        "{}: the prepared weights take {}, which is more than the {} that the cache may have "
        "(--cache-size)",
        directory_, format_bytes(index.file_bytes()), format_bytes(budget));
  for (auto oldest = others.rbegin(); oldest != others.rend() && total > budget; ++oldest)
    if (remove_prepared(oldest->path)) total -= oldest->bytes;
  if (total > budget) return error("{}: files in use leave no room in the cache (--cache-size)", directory_);
  return {};
}

void WeightCache::touch(const std::string& path) const {
  ::utimensat(AT_FDCWD, path.c_str(), nullptr, 0);
}

bool remove_prepared(const std::string& path) {
  const Result<File> file = File::open(path, File::Mode::kRead);
  if (!file.ok()) return false;
  return file->try_lock() && file->is_current() && ::unlink(path.c_str()) == 0;
}

}  // namespace eider
