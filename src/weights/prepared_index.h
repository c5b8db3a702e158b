// PreparedIndex: what a prepared file holds and where. A prepared file (a file of the weight cache) has a
// model's weights in the form that a backend reads, so that the next start maps it instead of making that
// form again. docs/FORMATS.md has the picture. Here is the layout alone; prepared_file.h reads and writes.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "format/format.h"

namespace eider {

/// What prepared weights were made from, and how. Files of different keys have nothing to do with each other.
struct PreparedKey {
  std::array<std::uint64_t, 2> fingerprint{};  ///< of the checkpoint (fingerprint.h)
  std::uint32_t layout = 0;                    ///< version of the backend's form
  std::uint32_t slice = 0, slices = 1;         ///< which part of each weight; 0 of 1: all of it

  bool operator==(const PreparedKey&) const = default;
  /// "0123456789abcdef0123456789abcdef-l1-s0of1": the name of its file.
  std::string text() const;
};

/// One prepared weight.
struct PreparedTensor {
  std::string name;
  std::int32_t layer = -1;  ///< -1: before or after the layers
  std::int64_t bytes = 0;

  bool operator==(const PreparedTensor&) const = default;
};

/// Tensors of one layer that follow each other: what is written, found finished and checked as one.
struct PreparedSection {
  std::int32_t layer = -1;
  std::size_t first = 0, count = 0;  ///< of the tensors
  std::int64_t offset = 0;           ///< in the data, a multiple of the alignment
  std::int64_t bytes = 0;            ///< another one: zeros fill up the end

  /// "layer 3", "the weights outside of the layers"
  std::string name() const;
};

class PreparedIndex {
 public:
  /// `alignment`: of the sections, a multiple of 4096; 2 MiB where pages of that size are wanted. `source`:
  /// the path of the checkpoint, for people.
  PreparedIndex(PreparedKey key, std::string source, std::vector<PreparedTensor> tensors,
                std::int64_t alignment);
  /// From the first bytes of a file; every claim is checked against the checksums and the size of what is
  /// there. Errors do not name the file.
  static Result<PreparedIndex> parse(std::span<const std::byte> file_start);
  /// Bytes of a file's start that parse() needs, read from the first kHeaderBytes.
  static Result<std::int64_t> start_bytes(std::span<const std::byte> header);
  static constexpr std::int64_t kHeaderBytes = 88;

  const PreparedKey& key() const { return key_; }
  const std::string& source() const { return source_; }
  const std::vector<PreparedTensor>& tensors() const { return tensors_; }
  const std::vector<PreparedSection>& sections() const { return sections_; }
  /// Where tensor `index` begins in the data, and how far it and the zeros up to the next one reach.
  std::int64_t offset(std::size_t index) const { return offsets_[index]; }
  std::int64_t extent(std::size_t index) const { return offsets_[index + 1] - offsets_[index]; }

  std::int64_t data_offset() const { return data_offset_; }  ///< in the file
  std::int64_t data_bytes() const { return offsets_.back(); }
  std::int64_t file_bytes() const { return data_offset_ + data_bytes(); }

  /// What the file begins with, up to the records.
  const std::string& start() const { return start_; }
  /// A section's record: says that it is finished, and the checksums of its tensors.
  std::int64_t record_offset(std::size_t section) const { return record_offsets_[section]; }
  std::int64_t record_bytes(std::size_t section) const {
    return static_cast<std::int64_t>((sections_[section].count + 1) * sizeof(std::uint64_t));
  }
  std::int64_t records_end() const { return record_offsets_.back(); }
  std::vector<std::uint64_t> make_record(std::size_t section, std::vector<std::uint64_t> checksums) const;
  /// Whether `record` is one that make_record() gave.
  bool is_record(std::size_t section, std::span<const std::uint64_t> record) const;

  /// Whether a file of that index can serve as one of this: only the sources may differ.
  bool fits(const PreparedIndex& other) const {
    return key_ == other.key_ && alignment_ == other.alignment_ && tensors_ == other.tensors_;
  }

 private:
  void lay_out();
  std::string make_start() const;
  std::uint64_t mark(std::size_t section, std::span<const std::uint64_t> checksums) const;

  PreparedKey key_;
  std::string source_;
  std::vector<PreparedTensor> tensors_;
  std::int64_t alignment_;
  std::vector<PreparedSection> sections_;
  std::vector<std::int64_t> offsets_;         // of the tensors, and the end
  std::vector<std::int64_t> record_offsets_;  // of the sections, and the end
  std::int64_t data_offset_ = 0;
  std::string start_;
  std::uint64_t start_checksum_ = 0;
};

/// The checksum of all of the weight cache.
std::uint64_t prepared_checksum(std::span<const std::byte> bytes, std::uint64_t seed = 0);

}  // namespace eider
