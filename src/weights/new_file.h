// NewFile: a file that is written in one pass beside its final path and takes its place when it is complete.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"

namespace eider {

/// Called with bytes done and bytes in all now and then; writing gives up when it returns false.
using WriteProgress = std::function<bool(std::int64_t, std::int64_t)>;

/// Errors do not name the path. What is not committed is removed.
class NewFile {
 public:
  /// `total`: bytes of data that will be written.
  static Result<NewFile> create(const std::string& path, std::int64_t total = 0, WriteProgress progress = {});
  NewFile(NewFile&& other) noexcept;
  NewFile& operator=(NewFile&&) = delete;
  ~NewFile();

  Status write(std::string_view bytes);
  /// Data that progress is told of.
  Status write_data(std::string_view bytes);
  /// Returns when what was written is on the disk: a file that is committed then is whole after a crash.
  Status sync();
  Status commit();

 private:
  NewFile(std::string path, std::string partial) : path_(std::move(path)), partial_(std::move(partial)) {}

  std::string path_;
  std::string partial_;
  int descriptor_ = -1;
  std::int64_t done_ = 0, total_ = 0;
  WriteProgress progress_;
};

}  // namespace eider
