#include "weights/printable.h"

#include <fmt/format.h>

#include <cstddef>

namespace eider {

std::string printable(std::string_view text) {
  constexpr std::size_t kLongest = 80;
  std::string shown = "\"";
  for (const char c : text.substr(0, kLongest)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte > 0x7e)
      shown += fmt::format("\\x{:02x}", byte);
    else
      shown += c;
  }
  if (text.size() > kLongest) shown += "...";
  return shown + "\"";
}

}  // namespace eider
