#include "base/machine.h"

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <optional>
#include <set>
#include <sstream>
#include <string_view>
#include <thread>

namespace eider {
namespace {

constexpr std::int64_t kUnlimited = std::numeric_limits<std::int64_t>::max();

/// The whole of a small file, or nothing.
std::optional<std::string> read_text(const std::string& path) {
  std::ifstream file(path);
  if (!file) return std::nullopt;
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

/// The first number of a file; nothing for "max" and for files that are not there.
std::optional<std::int64_t> read_number(const std::string& path) {
  std::ifstream file(path);
  std::int64_t number = 0;
  if (file >> number) return number;
  return std::nullopt;
}

/// The number after `key` on the line of its own that starts with it.
std::optional<std::int64_t> number_after(const std::string& text, std::string_view key) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string word;
    std::int64_t number = 0;
    if (words >> word >> number && word == key) return number;
  }
  return std::nullopt;
}

/// CPUs that the process may run on. Its mask may name some that are switched off or were never there.
std::vector<int> allowed_cpus(const std::string& root) {
  const std::optional<std::string> status = read_text(root + "/proc/self/status");
  constexpr std::string_view kKey = "Cpus_allowed_list:";
  const std::size_t at = status ? status->find(kKey) : std::string::npos;
  std::vector<int> cpus;
  if (at != std::string::npos) {
    std::istringstream rest(status->substr(at + kKey.size()));
    std::string list;
    rest >> list;
    cpus = parse_cpu_list(list);
  }
  const std::vector<int> online =
      parse_cpu_list(read_text(root + "/sys/devices/system/cpu/online").value_or(""));
  if (!online.empty()) std::erase_if(cpus, [&](int cpu) { return !std::ranges::binary_search(online, cpu); });
  if (cpus.empty())
    for (unsigned cpu = 0; cpu < std::max(1u, std::thread::hardware_concurrency()); ++cpu)
      cpus.push_back(static_cast<int>(cpu));
  return cpus;
}

/// CPUs that share a core with `cpu`, itself among them; empty where the machine does not say.
std::vector<int> siblings_of(const std::string& root, int cpu) {
  const std::string topology = root + "/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/";
  for (const char* file : {"core_cpus_list", "thread_siblings_list"})  // the name of today, and the older one
    if (const auto list = read_text(topology + file)) return parse_cpu_list(*list);
  return {};
}

/// One CPU of each set of siblings that shares a core.
std::vector<int> one_per_core(const std::string& root, const std::vector<int>& allowed) {
  std::set<int> seen;  // the lowest sibling, allowed or not, names the core
  std::vector<int> cores;
  for (int cpu : allowed) {
    const std::vector<int> siblings = siblings_of(root, cpu);
    if (seen.insert(siblings.empty() ? cpu : siblings.front()).second) cores.push_back(cpu);
  }
  return cores;
}

/// What a controller's cgroups grant: the tightest from the process's own up to the mount's root.
struct CgroupLimits {
  double cpus = 0;  // 0: unlimited
  std::int64_t memory = kUnlimited;
  std::int64_t memory_left = kUnlimited;
};

/// Names of the files that version 1 and version 2 keep the same facts in.
struct CgroupFiles {
  const char* memory_limit;
  const char* memory_usage;
  const char* stat_active;  // page cache, lines of memory.stat
  const char* stat_inactive;
};
constexpr CgroupFiles kV1{"memory.limit_in_bytes", "memory.usage_in_bytes", "total_active_file",
                          "total_inactive_file"};
constexpr CgroupFiles kV2{"memory.max", "memory.current", "active_file", "inactive_file"};

/// CPUs that a group grants, by cpu.max (v2) or the two files of v1; 0 where unlimited.
double group_cpus(const std::string& group) {
  std::int64_t quota = 0, period = 0;
  std::ifstream max(group + "/cpu.max");
  if (max >> quota >> period)
    return period > 0 ? static_cast<double>(quota) / static_cast<double>(period) : 0;
  quota = read_number(group + "/cpu.cfs_quota_us").value_or(-1);
  period = read_number(group + "/cpu.cfs_period_us").value_or(0);
  return quota > 0 && period > 0 ? static_cast<double>(quota) / static_cast<double>(period) : 0;
}

void apply_group(const std::string& group, const CgroupFiles& files, CgroupLimits& limits) {
  const double cpus = group_cpus(group);
  if (cpus > 0) limits.cpus = limits.cpus > 0 ? std::min(limits.cpus, cpus) : cpus;

  const std::optional<std::int64_t> limit = read_number(group + "/" + files.memory_limit);
  if (!limit) return;
  limits.memory = std::min(limits.memory, *limit);
  const std::string stat = read_text(group + "/memory.stat").value_or("");
  const std::int64_t cache =
      number_after(stat, files.stat_active).value_or(0) + number_after(stat, files.stat_inactive).value_or(0);
  const std::int64_t taken = read_number(group + "/" + files.memory_usage).value_or(0) - cache;
  limits.memory_left =
      std::min(limits.memory_left, std::max<std::int64_t>(0, *limit - std::max<std::int64_t>(0, taken)));
}

/// A cgroup file system: where it is mounted, and which of its groups is the mount's root.
struct CgroupMount {
  std::string point;
  std::string root;
  std::string options;  // of version 1: its controllers among others; empty: version 2
};

std::vector<CgroupMount> cgroup_mounts(const std::string& root) {
  std::vector<CgroupMount> mounts;
  std::istringstream lines(read_text(root + "/proc/self/mountinfo").value_or(""));
  for (std::string line; std::getline(lines, line);) {
    // 36 35 98:0 /group/of/root /mount/point rw,noatime master:1 - cgroup2 source rw
    std::istringstream words(line);
    std::string skipped, type, source;
    CgroupMount mount;
    words >> skipped >> skipped >> skipped >> mount.root >> mount.point;
    while (words >> skipped && skipped != "-") {
    }
    words >> type >> source >> mount.options;
    if (type == "cgroup2") mount.options.clear();
    if (words && (type == "cgroup" || type == "cgroup2")) mounts.push_back(mount);
  }
  return mounts;
}

/// True when the comma-separated `list` holds `word`.
bool holds(const std::string& list, std::string_view word) {
  std::istringstream words(list);
  for (std::string item; std::getline(words, item, ',');)
    if (item == word) return true;
  return false;
}

CgroupLimits cgroup_limits(const std::string& root) {
  CgroupLimits limits;
  const std::vector<CgroupMount> mounts = cgroup_mounts(root);
  std::istringstream lines(read_text(root + "/proc/self/cgroup").value_or(""));
  for (std::string line; std::getline(lines, line);) {
    // "0::/a/b" of version 2, "4:cpu,cpuacct:/a/b" of version 1
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const bool v2 = controllers.empty();
    const std::string_view controller = holds(controllers, "memory") ? "memory" : "cpu";
    if (!v2 && !holds(controllers, controller)) continue;

    for (const CgroupMount& mount : mounts) {
      if (v2 ? !mount.options.empty() : !holds(mount.options, controller)) continue;
      // A container sees its own group as the mount's root; the path may then name what lies outside.
      std::string group = line.substr(second + 1);
      if (mount.root != "/" && group.starts_with(mount.root)) group.erase(0, mount.root.size());
      for (;;) {
        while (group.ends_with('/')) group.pop_back();
        apply_group(root + mount.point + group, v2 ? kV2 : kV1, limits);
        if (group.empty()) break;
        const std::size_t slash = group.rfind('/');
        group.resize(slash == std::string::npos ? 0 : slash);
      }
    }
  }
  return limits;
}

#if defined(__x86_64__)
// __builtin_cpu_supports also asks whether the operating system keeps the wide registers; the compilers'
// lists lack F16C and AVX-VNNI, which use the registers of AVX2.
void detect_instructions(Machine& machine) {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  const bool has_f16c = __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_F16C) != 0;
  constexpr unsigned kAvxVnni = 1u << 4;  // leaf 7, subleaf 1
  const bool has_avx_vnni = __get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx) != 0 && (eax & kAvxVnni) != 0;

  machine.has_fma = has_f16c && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  machine.has_avx_vnni = machine.has_fma && has_avx_vnni;
  machine.has_avx512 = machine.has_fma && __builtin_cpu_supports("avx512f") &&
                       __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
                       __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vnni");
}
#elif defined(__aarch64__)
void detect_instructions(Machine& machine) {
  machine.has_dot_product = (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0;
}
#else
void detect_instructions(Machine&) {}
#endif

}  // namespace

std::vector<int> parse_cpu_list(const std::string& text) {
  constexpr int kMostCpus =
      1 << 16;  // more than any kernel is built for: keeps a damaged file from filling memory
  std::vector<int> cpus;
  std::istringstream words(text);
  for (std::string item; std::getline(words, item, ',');) {
    std::istringstream numbers(item);
    int first = 0, last = 0;
    char dash = 0;
    if (!(numbers >> first)) return {};
    if (!(numbers >> dash >> last)) last = first;
    if (first < 0 || last < first || last >= kMostCpus) return {};
    for (int cpu = first; cpu <= last; ++cpu) cpus.push_back(cpu);
  }
  std::ranges::sort(cpus);
  return cpus;
}

int Machine::default_threads() const {
  const auto cores = static_cast<double>(physical_cores.size());
  const double granted = cpu_quota > 0 ? std::min(cores, cpu_quota) : cores;
  return std::max(1, static_cast<int>(std::lround(granted)));
}

std::span<const int> Machine::cores_for(int threads) const {
  const bool quota_binds = cpu_quota > 0 && cpu_quota < threads;
  if (quota_binds || static_cast<std::size_t>(threads) != physical_cores.size()) return {};
  return physical_cores;
}

Machine detect_machine(const std::string& root) {
  Machine machine;
  machine.physical_cores = one_per_core(root, allowed_cpus(root));
  detect_instructions(machine);

  const CgroupLimits limits = cgroup_limits(root);
  machine.cpu_quota = limits.cpus;
  const std::string meminfo = read_text(root + "/proc/meminfo").value_or("");
  const auto ram = [&](std::string_view key) {
    const std::optional<std::int64_t> kibibytes = number_after(meminfo, key);
    return kibibytes ? *kibibytes * 1024 : kUnlimited;
  };
  machine.total_memory = std::min(ram("MemTotal:"), limits.memory);
  machine.available_memory = std::min(ram("MemAvailable:"), limits.memory_left);
  return machine;
}

}  // namespace eider
