// SafetensorsWriter: makes small .safetensors files for tests.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/temp_dir.h"

namespace eider::test {

/// The length of a header, the header, the data.
inline std::string safetensors_bytes(std::string_view header, std::string_view data) {
  const std::uint64_t length = header.size();
  std::string bytes(reinterpret_cast<const char*>(&length), sizeof length);
  bytes += header;
  bytes += data;
  return bytes;
}

class SafetensorsWriter {
 public:
  SafetensorsWriter& tensor(std::string_view name, std::string_view dtype,
                            const std::vector<std::int64_t>& shape, std::string_view data) {
    header_ += fmt::format(R"({}"{}":{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})",
                           header_.empty() ? "{" : ",", name, dtype, fmt::join(shape, ","), data_.size(),
                           data_.size() + data.size());
    data_ += data;
    return *this;
  }

  /// Spaces at the header's end: they shift the data section.
  SafetensorsWriter& pad_header(std::size_t spaces) {
    padding_ = spaces;
    return *this;
  }

  std::string bytes() const {
    return safetensors_bytes((header_.empty() ? "{" : header_) + "}" + std::string(padding_, ' '), data_);
  }
  void write(const std::string& path) const { write_file(path, bytes()); }

 private:
  std::string header_;
  std::string data_;
  std::size_t padding_ = 0;
};

}  // namespace eider::test
