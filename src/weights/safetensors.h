// SafetensorsFile: the header of one .safetensors file, checked, and its tensors' bytes. Hugging Face
// directories are made of these (checkpoint.h); goldens too.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "base/mapped_file.h"
#include "base/result.h"
#include "tensor/tensor_view.h"

namespace eider {

class SafetensorsFile {
 public:
  struct Entry {
    std::string dtype;  ///< as written: "F32", "BF16", "I32", "F8_E4M3", ...
    Shape shape;
    std::span<const std::byte> bytes;  ///< inside the mapping; not necessarily aligned
  };

  /// Every claim of the header is checked against the file: lengths, dtypes' sizes, overlaps, holes,
  /// duplicates.
  static Result<SafetensorsFile> open(const std::string& path);
  /// The header of a file already in memory (fuzzing, tests); `bytes` must outlive the entries.
  static Result<std::map<std::string, Entry, std::less<>>> parse(std::span<const std::byte> bytes);

  const std::map<std::string, Entry, std::less<>>& entries() const { return entries_; }
  const Entry* find(std::string_view name) const;
  const MappedFile& file() const { return file_; }
  /// Gives the mapping away; bytes of entries taken before stay valid with it.
  MappedFile release() && { return std::move(file_); }

 private:
  SafetensorsFile(MappedFile file, std::map<std::string, Entry, std::less<>> entries)
      : file_(std::move(file)), entries_(std::move(entries)) {}

  MappedFile file_;
  std::map<std::string, Entry, std::less<>> entries_;
};

}  // namespace eider
