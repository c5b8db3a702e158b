// Reports: what was measured, as tables for people and as JSON for programs.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "bench/ab_report.h"
#include "bench/attention_bench.h"
#include "bench/host_info.h"
#include "bench/kernel_bench.h"
#include "bench/machine_bench.h"
#include "bench/model_bench.h"
#include "bench/table.h"

namespace eider::bench {

/// Everything that one run of `eider bench` measured; what it did not is empty.
struct Results {
  HostInfo host;
  std::optional<MachineReport> machine;
  std::vector<KernelResult> kernels;
  std::vector<AttentionResult> attention;
  std::vector<ModelResult> models;
  AbSides ab_sides;
  std::optional<AbReport> ab;
  std::vector<std::string> cut_short;  ///< what there was no time for, a line each
};

Table host_table(const HostInfo& host);
std::vector<Table> machine_tables(const MachineReport& report);
Table kernel_table(const std::vector<KernelResult>& results);
Table attention_table(const std::vector<AttentionResult>& results);
Table model_table(const std::vector<ModelResult>& results);

/// {"machine", "kernels", "attention", "models", "ab" where sides were compared, and "cut_short" where the
/// time was over}. Numbers have at most five digits.
nlohmann::ordered_json results_json(const Results& results);

}  // namespace eider::bench
