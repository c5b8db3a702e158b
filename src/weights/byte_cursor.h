// ByteCursor: reads little-endian numbers and length-prefixed strings from untrusted bytes and never past
// their end.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "base/result.h"

namespace eider {

static_assert(std::endian::native == std::endian::little, "checkpoint files are read as they lie in memory");

class ByteCursor {
 public:
  explicit ByteCursor(std::span<const std::byte> bytes) : bytes_(bytes) {}

  std::size_t position() const { return position_; }
  std::size_t remaining() const { return bytes_.size() - position_; }

  /// `what` names the thing read in the error: "the file ends inside the tensor count, at byte 13".
  Result<std::span<const std::byte>> take(std::uint64_t count, std::string_view what) {
    if (count > remaining())
      return error("the file ends inside {}, at byte {}: it is cut off or damaged", what, bytes_.size());
    const auto taken = bytes_.subspan(position_, static_cast<std::size_t>(count));
    position_ += taken.size();
    return taken;
  }

  template <class T>
  Result<T> number(std::string_view what) {
    EIDER_TRY(const auto bytes, take(sizeof(T), what));
    T value;
    std::memcpy(&value, bytes.data(), sizeof value);
    return value;
  }

  /// u64 length, then that many bytes.
  Result<std::string_view> string(std::string_view what) {
    EIDER_TRY(const auto length, number<std::uint64_t>(what));
    EIDER_TRY(const auto bytes, take(length, what));
    return std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }

  /// Passes over `count` strings; false when the bytes end before they do. A vocabulary has 250,000 of them,
  /// so this loop makes no Result for each.
  bool skip_strings(std::uint64_t count) {
    for (; count > 0; --count) {
      std::uint64_t length = 0;
      if (remaining() < sizeof length) return false;
      std::memcpy(&length, bytes_.data() + position_, sizeof length);
      if (length > remaining() - sizeof length) return false;
      position_ += sizeof length + static_cast<std::size_t>(length);
    }
    return true;
  }

 private:
  std::span<const std::byte> bytes_;
  std::size_t position_ = 0;
};

}  // namespace eider
