// HostInfo: what a reader of figures must know of the machine they come from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/machine.h"

namespace eider::bench {

struct HostInfo {
  std::string cpu;                  ///< the model's name, "unknown" where the system does not tell
  std::size_t l1d_bytes, l2_bytes;  ///< of one core
  std::size_t l3_bytes;             ///< as the system reports it, which in virtual machines may be too much
  std::string huge_pages;           ///< "always", "madvise", "never" or "unknown"
  std::vector<std::string> isas;    ///< of the cpu backend, best first
};

HostInfo describe_host(const Machine& machine);

}  // namespace eider::bench
