// Reports: what was measured, as tables for people and as JSON for programs.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "bench/host_info.h"
#include "bench/kernel_bench.h"
#include "bench/machine_bench.h"
#include "bench/model_bench.h"
#include "bench/table.h"

namespace eider::bench {

std::vector<Table> machine_tables(const HostInfo& host, const MachineReport& report);
Table kernel_table(const std::vector<KernelResult>& results);
Table model_table(const std::vector<ModelResult>& results);

/// Numbers have at most five digits. `report` may be null: then only what the machine is.
nlohmann::ordered_json machine_json(const HostInfo& host, const MachineReport* report);
nlohmann::ordered_json kernel_json(const std::vector<KernelResult>& results);
nlohmann::ordered_json model_json(const std::vector<ModelResult>& results);

}  // namespace eider::bench
