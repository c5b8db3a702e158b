// PreparedFile: a file of the weight cache. Each section's record is written after the section's data is on
// the disk, so that a process that ends at any moment leaves a file whose finished sections are right and
// whose others are known to be missing. What is written at a place is always the same bytes, so a process
// that has the file mapped is not harmed by another one that mends it. A file never shrinks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/result.h"
#include "weights/prepared_index.h"

namespace eider {

/// progress(bytes done, bytes in all): false stops.
using PreparedProgress = std::function<bool(std::int64_t, std::int64_t)>;

class PreparedFile {
 public:
  enum class State : std::uint8_t {
    kMissing,   ///< not written yet
    kFinished,  ///< written, its checksums known; whether its data is still that is check()'s to say
    kDamaged    ///< neither: its record makes no sense
  };

  /// Opens a file for reading and looks at all of it but the data. Fails where there is none, where it is
  /// another version's, and where its header or index is damaged or cut off.
  static Result<PreparedFile> open(const std::string& path, File::Mode mode = File::Mode::kRead);
  /// Opens the file to be written and takes its lock; nothing where another process has it. What is there and
  /// fits `index` is kept; else a new file takes its place, with all of its disk space.
  static Result<std::optional<PreparedFile>> open_to_write(const std::string& path,
                                                           const PreparedIndex& index);

  const std::string& path() const { return file_.path(); }
  const File& file() const { return file_; }
  const PreparedIndex& index() const { return index_; }
  State state(std::size_t section) const { return states_[section]; }
  std::size_t finished() const;
  bool complete() const { return finished() == states_.size(); }

  /// Checks a finished section's bytes, as mapped. False: they are not what was written. Nothing: stopped,
  /// because goes_on() was false.
  std::optional<bool> check(std::size_t section, std::span<const std::byte> data,
                            const std::function<bool()>& goes_on) const;
  /// The same for the bytes that the file has.
  Result<bool> check_on_disk(std::size_t section, const PreparedProgress& progress) const;

  /// Writes a section's bytes, waits until they are on the disk, and says that it is finished. Only after
  /// open_to_write(). Fails when `progress` stops it.
  Status write(std::size_t section, std::span<const std::byte> data, const PreparedProgress& progress);
  /// Says of a section that it is missing. Needs a file that may be written.
  Status discard(std::size_t section);
  /// Removes the file, so that a cache that could not be written keeps no disk space. Only after
  /// open_to_write().
  void remove();

 private:
  PreparedFile(File file, PreparedIndex index) : file_(std::move(file)), index_(std::move(index)) {}
  static Result<PreparedFile> read(File file);
  static Result<PreparedFile> begin(File file, const PreparedIndex& index);
  Status read_records();

  File file_;
  PreparedIndex index_;
  std::vector<State> states_;
  std::vector<std::vector<std::uint64_t>> records_;
};

}  // namespace eider
