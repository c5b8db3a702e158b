// Appends numbers and texts to the bytes of a file that is being made, as ByteCursor reads them:
// little-endian.
#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>

namespace eider {

static_assert(std::endian::native == std::endian::little, "files are little-endian");

template <class T>
void put(std::string& bytes, T number) {
  bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
}

/// Its length in eight bytes, and the text.
inline void put_string(std::string& bytes, std::string_view text) {
  put(bytes, static_cast<std::uint64_t>(text.size()));
  bytes += text;
}

}  // namespace eider
