// WeightCache: the directory that prepared files lie in, and how much of the disk they may take.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "weights/prepared_index.h"

namespace eider {

/// A file of the cache, as far as it can be told.
struct CacheEntry {
  std::string path;
  std::int64_t bytes = 0;      ///< that it takes on the disk
  std::int64_t last_used = 0;  ///< seconds since 1970
  std::string problem;         ///< why it cannot be used; what follows is empty then
  PreparedKey key;
  std::string source;  ///< the checkpoint's path as it was prepared
  std::size_t finished = 0, sections = 0;
};

class WeightCache {
 public:
  /// `budget`: most bytes of all files; absent: half of what they take and the disk has free. Nothing is made
  /// or looked at yet.
  WeightCache(std::string directory, std::optional<std::int64_t> budget)
      : directory_(std::move(directory)), budget_(budget) {}

  const std::string& directory() const { return directory_; }
  std::string path_of(const PreparedKey& key) const;

  /// All files of the cache, the one used last first; none where there is no directory.
  std::vector<CacheEntry> list() const;
  /// Makes the directory, and room for a file of `index`: removes what was prepared from the same source
  /// before it changed, then the files that were used least recently, until the budget holds what
  /// is left and the new one. Files that are being written stay. Fails where the budget is too small.
  Status make_room(const PreparedIndex& index) const;
  /// Says that a file is in use now. Does nothing where that cannot be noted.
  void touch(const std::string& path) const;

 private:
  std::string directory_;
  std::optional<std::int64_t> budget_;
};

/// Removes a file of the cache unless another process is writing it; whoever has it mapped keeps it until it
/// ends. Whether it is gone.
bool remove_prepared(const std::string& path);

}  // namespace eider
