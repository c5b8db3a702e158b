#include "base/format_bytes.h"

#include <fmt/format.h>

namespace eider {

std::string format_bytes(std::int64_t bytes) {
  constexpr double kKiB = 1024, kMiB = kKiB * 1024, kGiB = kMiB * 1024;
  const auto value = static_cast<double>(bytes);
  if (value >= kGiB) return fmt::format("{:.1f} GiB", value / kGiB);
  if (value >= kMiB) return fmt::format("{:.1f} MiB", value / kMiB);
  return fmt::format("{:.1f} KiB", value / kKiB);
}

}  // namespace eider
