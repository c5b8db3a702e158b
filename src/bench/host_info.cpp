#include "bench/host_info.h"

#include <fmt/format.h>

#include <charconv>
#include <fstream>

#include "backend/cpu/cpu_backend.h"

namespace eider::bench {
namespace {

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

/// "2048K" as the kernel writes sizes of caches.
std::size_t parse_size(const std::string& text) {
  std::size_t number = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (problem != std::errc()) return 0;
  const char unit = end == text.data() + text.size() ? ' ' : *end;
  return number << (unit == 'K' ? 10 : unit == 'M' ? 20 : 0);
}

/// Of the first CPU's data or unified cache of `level`.
std::size_t cache_size(int level, std::size_t otherwise) {
  for (int index = 0; index < 8; ++index) {
    const std::string cache = fmt::format("/sys/devices/system/cpu/cpu0/cache/index{}/", index);
    if (first_line(cache + "level") != std::to_string(level)) continue;
    if (first_line(cache + "type") == "Instruction") continue;
    if (const std::size_t size = parse_size(first_line(cache + "size")); size > 0) return size;
  }
  return otherwise;
}

std::string cpu_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown";
}

/// The word in brackets of "always [madvise] never".
std::string huge_page_mode() {
  const std::string modes = first_line("/sys/kernel/mm/transparent_hugepage/enabled");
  const std::size_t begin = modes.find('['), end = modes.find(']');
  if (begin == std::string::npos || end == std::string::npos || end < begin) return "unknown";
  return modes.substr(begin + 1, end - begin - 1);
}

}  // namespace

HostInfo describe_host(const Machine& machine) {
  HostInfo host{.cpu = cpu_name(),
                .l1d_bytes = cache_size(1, std::size_t{32} << 10),
                .l2_bytes = cache_size(2, std::size_t{512} << 10),
                .l3_bytes = cache_size(3, 0),
                .huge_pages = huge_page_mode()};
  for (const std::string_view isa : cpu_isas(machine)) host.isas.emplace_back(isa);
  return host;
}

}  // namespace eider::bench
