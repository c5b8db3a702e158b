// The machine's own speeds: bandwidth, arithmetic, and what meetings of threads cost.
#pragma once

#include <string>
#include <vector>

#include "base/machine.h"
#include "base/result.h"
#include "bench/bandwidth.h"
#include "bench/host_info.h"
#include "bench/progress.h"
#include "bench/thread_costs.h"
#include "bench/time_limit.h"

namespace eider::bench {

struct MachineOptions {
  int threads = 1;  ///< the most; measured are 1, 2, 4, ... and this
  int samples = 5;
  std::size_t cold_bytes = 0;  ///< memory that cold measurements walk
};

struct MachineReport {
  struct Bandwidth {
    Access access;
    bool cold;  ///< from memory, else from second-level caches
    Pages pages;
    int threads;
    int streams;
    Samples gb_s;
  };
  struct Peak {
    std::string isa;
    std::string operation;  ///< "fp32_fma", "int8_dot"
    int threads;
    Samples gop_s;
  };

  std::vector<Bandwidth> bandwidth;
  std::vector<Peak> peaks;
  std::vector<ThreadCosts> thread_costs;
  bool complete = true;  ///< false: the time was over before all was measured
};

Result<MachineReport> measure_machine(const Machine& machine, const HostInfo& host,
                                      const MachineOptions& options, const Progress& progress,
                                      const TimeLimit& limit = {});

/// Memory for cold measurements where nobody asks for another size: four times the last-level cache, from 256
/// MiB to 1 GiB, and no more than a quarter of what is free.
std::size_t default_cold_bytes(const Machine& machine, const HostInfo& host);

}  // namespace eider::bench
