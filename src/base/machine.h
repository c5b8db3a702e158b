// What this process may use of the machine: cores by affinity and cgroup, memory by RAM and cgroup. Read once
// in tools/ and handed down; nothing here is cached or global.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace eider {

struct Machine {
  /// Logical CPUs that are online and in the affinity mask, one per physical core (the lowest allowed
  /// sibling), ascending. Cores of hybrid CPUs count alike.
  std::vector<int> physical_cores;
  /// CPU time the cgroup grants, in CPUs (v1 and v2, the tightest of all ancestors); 0 where unlimited.
  double cpu_quota = 0;
  /// Bytes this process may still take without swapping: the smaller of MemAvailable and what the tightest
  /// cgroup leaves (page cache of its own counted as free).
  std::int64_t available_memory = 0;
  /// Total bytes: the smaller of RAM and the tightest cgroup limit.
  std::int64_t total_memory = 0;
  /// x86-64 with AVX2, FMA and F16C.
  bool has_fma = false;
  /// x86-64 with AVX-512 F, BW, DQ, VL and VNNI (and all of has_fma).
  bool has_avx512 = false;
  /// x86-64 with AVX-VNNI (and all of has_fma).
  bool has_avx_vnni = false;
  /// 64-bit ARM with the dot product instructions of ARMv8.2.
  bool has_dot_product = false;

  /// Default of -t: physical cores, but no more than the quota, at least 1. The quota is rounded to the
  /// nearest: a thread that is granted less than half a core adds less than the others lose by waiting for
  /// it.
  int default_threads() const;
  /// The cores that `threads` threads are kept on, one each: all, where there is a thread for each and the
  /// quota grants all of their time. Else empty: where to run is then the kernel's choice, which knows what
  /// other processes are doing.
  std::span<const int> cores_for(int threads) const;
};

/// Reads /proc and /sys beneath `root` ("": the real ones); what cannot be read counts as unlimited.
Machine detect_machine(const std::string& root = "");

/// "0-3,8" as the kernel writes sets of CPUs: {0, 1, 2, 3, 8}. Empty for what is not such a list.
std::vector<int> parse_cpu_list(const std::string& text);

}  // namespace eider
