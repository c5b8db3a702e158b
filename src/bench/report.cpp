#include "bench/report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "bench/numbers.h"
#include "bench/probes.h"
#include "format/storage_format.h"

namespace eider::bench {
namespace {

using nlohmann::ordered_json;

std::string with_spread(const Samples& samples) {
  return fmt::format("{:.2f} ± {:.2f}", samples.median(), samples.spread());
}

const char* page_name(Pages pages) {
  return pages == Pages::kHuge ? "2 MiB" : "4 KiB";
}

Table bandwidth_table(const MachineReport& report) {
  Table table{"Bandwidth, GB/s by streams of each thread (a copied byte counts once)",
              {{"access", false}, {"from", false}, {"pages", false}, {"threads"}},
              {}};
  for (const int streams : kStreamCounts)
    table.columns.push_back({fmt::format("{} stream{}", streams, streams == 1 ? "" : "s")});
  for (const auto& row : report.bandwidth) {
    if (row.streams == kStreamCounts[0])
      table.rows.push_back({std::string(access_name(row.access)), row.cold ? "memory" : "L2 cache",
                            page_name(row.pages), std::to_string(row.threads)});
    table.rows.back().push_back(number(row.gb_s.median()));
  }
  return table;
}

Table peak_table(const MachineReport& report) {
  Table table{"Arithmetic, 10^9 operations a second (two a multiply-add)",
              {{"instruction set", false}, {"operation", false}, {"threads"}, {"Gop/s"}, {"±"}},
              {}};
  for (const auto& peak : report.peaks)
    table.rows.push_back({peak.isa, peak.operation, std::to_string(peak.threads), number(peak.gop_s.median()),
                          number(peak.gop_s.spread())});
  return table;
}

Table thread_table(const MachineReport& report) {
  Table table{"Threads, nanoseconds",
              {{"threads"}, {"barrier"}, {"run, threads spinning"}, {"run, threads parked"}},
              {}};
  for (const ThreadCosts& costs : report.thread_costs)
    table.rows.push_back({std::to_string(costs.threads), number(costs.barrier.median()),
                          number(costs.run_spinning.median()), number(costs.run_parked.median())});
  return table;
}

std::string cache_size(std::size_t bytes) {
  return bytes < (1 << 20) ? fmt::format("{} KiB", bytes >> 10) : fmt::format("{} MiB", bytes >> 20);
}

/// "4.02 B", "134.52 M", as llama-bench has them.
std::string parameter_text(std::int64_t count) {
  const auto value = static_cast<double>(count);
  return value >= 1e9 ? fmt::format("{:.2f} B", value / 1e9) : fmt::format("{:.2f} M", value / 1e6);
}

std::string size_text(std::int64_t bytes) {
  const double mib = static_cast<double>(bytes) / (1 << 20);
  return mib >= 1024 ? fmt::format("{:.2f} GiB", mib / 1024) : fmt::format("{:.2f} MiB", mib);
}

const char* attention_name(const AttentionCase& attention) {
  return attention.tokens == 1 ? "decode" : "prefill";
}

const char* kv_type_name(KvType type) {
  return type == KvType::kF16 ? "F16" : "F32";
}

ordered_json roof_json(const Roof& roof) {
  if (roof.memory_read == 0) return nullptr;
  return {{"memory_read_gb_s", rounded(roof.memory_read)},
          {"cache_read_gb_s", rounded(roof.cache_read)},
          {"fp32_gop_s", rounded(roof.fp32)},
          {"int8_gop_s", rounded(roof.int8)}};
}

ordered_json machine_json(const HostInfo& host, const std::optional<MachineReport>& report) {
  ordered_json machine = {
      {"cpu", host.cpu},           {"l1d_bytes", host.l1d_bytes},   {"l2_bytes", host.l2_bytes},
      {"l3_bytes", host.l3_bytes}, {"huge_pages", host.huge_pages}, {"instruction_sets", host.isas}};
  if (!report) return machine;
  auto& bandwidth = machine["bandwidth"] = ordered_json::array();
  for (const auto& row : report->bandwidth)
    bandwidth.push_back({{"access", access_name(row.access)},
                         {"cache", row.cold ? "cold" : "hot"},
                         {"page_bytes", row.pages == Pages::kHuge ? 2 << 20 : 4096},
                         {"threads", row.threads},
                         {"streams", row.streams},
                         {"gb_s", rounded(row.gb_s.median())},
                         {"samples", rounded_list(row.gb_s.values())}});
  auto& peaks = machine["peaks"] = ordered_json::array();
  for (const auto& peak : report->peaks)
    peaks.push_back({{"isa", peak.isa},
                     {"operation", peak.operation},
                     {"threads", peak.threads},
                     {"gop_s", rounded(peak.gop_s.median())},
                     {"samples", rounded_list(peak.gop_s.values())}});
  auto& threads = machine["threads"] = ordered_json::array();
  for (const ThreadCosts& costs : report->thread_costs)
    threads.push_back({{"threads", costs.threads},
                       {"barrier_ns", rounded(costs.barrier.median())},
                       {"run_spinning_ns", rounded(costs.run_spinning.median())},
                       {"run_parked_ns", rounded(costs.run_parked.median())}});
  return machine;
}

/// Adds how fast a kernel ran, and on what, to what it computed.
template <class Result>
ordered_json with_speed(ordered_json kernel, const Result& result) {
  kernel.update(ordered_json{{"isa", result.isa},
                             {"threads", result.threads},
                             {"gb_s", rounded(result.gb_s())},
                             {"gop_s", rounded(result.gop_s())},
                             {"fraction_of_roof", rounded(result.fraction_of_roof)},
                             {"roof", roof_json(result.roof)}});
  return kernel;
}

ordered_json kernel_json(const std::vector<KernelResult>& results) {
  auto list = ordered_json::array();
  for (const KernelResult& result : results)
    list.push_back(with_speed({{"kernel", result.kernel.tokens == 1 ? "gemv" : "gemm"},
                               {"format", result.kernel.format_text()},
                               {"rows", result.rows},
                               {"columns", result.kernel.columns},
                               {"tokens", result.kernel.tokens},
                               {"cache", result.kernel.cold ? "cold" : "hot"},
                               {"gweights_s", rounded(result.gweights_s())},
                               {"products_s", rounded_list(result.products_s.values())}},
                              result));
  return list;
}

ordered_json attention_json(const std::vector<AttentionResult>& results) {
  auto list = ordered_json::array();
  for (const AttentionResult& result : results) {
    const AttentionCase& c = result.attention;
    list.push_back(with_speed({{"kernel", attention_name(c)},
                               {"kv_type", kv_type_name(c.kv_type)},
                               {"heads", c.shape.heads},
                               {"kv_heads", c.shape.kv_heads},
                               {"head_dim", c.shape.head_dim},
                               {"tokens", c.tokens},
                               {"position", c.position},
                               {"cache", "cold"},
                               {"layers_s", rounded_list(result.layers_s.values())}},
                              result));
  }
  return list;
}

ordered_json model_json(const std::vector<ModelResult>& results) {
  auto list = ordered_json::array();
  for (const ModelResult& result : results)
    list.push_back({{"model", result.run.model},
                    {"test", result.test.name()},
                    {"tok_s", rounded(result.tok_s.median())},
                    {"spread", rounded(result.tok_s.spread())},
                    {"samples", rounded_list(result.tok_s.values())},
                    {"fraction_of_roof", rounded(result.fraction_of_roof)},
                    {"logits_hash", fmt::format("{:016x}", result.logits_hash)},
                    {"bytes_per_token", static_cast<std::int64_t>(result.bytes_per_token)},
                    {"roof", roof_json(result.roof)},
                    {"roof_change", rounded(result.roof_change)},
                    {"backend", result.run.backend},
                    {"threads", result.run.threads},
                    {"n_ubatch", result.run.max_batch_tokens},
                    {"n_prompt", result.test.prompt},
                    {"n_gen", result.test.generate},
                    {"n_depth", result.test.depth},
                    {"model_size", result.run.weight_bytes},
                    {"model_n_params", result.run.parameters}});
  return list;
}

}  // namespace

Table host_table(const HostInfo& host) {
  Table machine{"Machine", {{"what", false}, {"is", false}}, {}};
  machine.rows = {
      {"cpu", host.cpu},
      {"caches", fmt::format("L1d {}, L2 {} a core, L3 {} (as the system tells)", cache_size(host.l1d_bytes),
                             cache_size(host.l2_bytes), cache_size(host.l3_bytes))},
      {"huge pages", host.huge_pages},
      {"instruction sets", fmt::format("{}", fmt::join(host.isas, ", "))}};
  return machine;
}

std::vector<Table> machine_tables(const MachineReport& report) {
  return {bandwidth_table(report), peak_table(report), thread_table(report)};
}

Table kernel_table(const std::vector<KernelResult>& results) {
  Table table{"Kernels",
              {{"kernel", false},
               {"format", false},
               {"rows"},
               {"columns"},
               {"tokens"},
               {"isa", false},
               {"threads"},
               {"weights from", false},
               {"GB/s"},
               {"Gweights/s"},
               {"Gop/s"},
               {"roof"}},
              {}};
  for (const KernelResult& result : results) {
    const KernelCase& kernel = result.kernel;
    table.rows.push_back(
        {kernel.tokens == 1 ? "gemv" : "gemm", kernel.format_text(), std::to_string(result.rows),
         std::to_string(kernel.columns), std::to_string(kernel.tokens), result.isa,
         std::to_string(result.threads), kernel.cold ? "memory" : "L2 cache", number(result.gb_s()),
         number(result.gweights_s()), number(result.gop_s()), percent(result.fraction_of_roof)});
  }
  return table;
}

Table attention_table(const std::vector<AttentionResult>& results) {
  Table table{"Attention of one layer",
              {{"kernel", false},
               {"KV", false},
               {"heads"},
               {"KV heads"},
               {"head_dim"},
               {"tokens"},
               {"at position"},
               {"isa", false},
               {"threads"},
               {"us"},
               {"GB/s"},
               {"Gop/s"},
               {"roof"}},
              {}};
  for (const AttentionResult& result : results) {
    const AttentionCase& c = result.attention;
    table.rows.push_back({attention_name(c), kv_type_name(c.kv_type), std::to_string(c.shape.heads),
                          std::to_string(c.shape.kv_heads), std::to_string(c.shape.head_dim),
                          std::to_string(c.tokens), std::to_string(c.position), result.isa,
                          std::to_string(result.threads), number(1e6 / result.layers_s.median()),
                          number(result.gb_s()), number(result.gop_s()), percent(result.fraction_of_roof)});
  }
  return table;
}

Table model_table(const std::vector<ModelResult>& results) {
  Table table{"",
              {{"model", false},
               {"size"},
               {"params"},
               {"backend", false},
               {"threads"},
               {"n_ubatch"},
               {"test"},
               {"t/s"},
               {"MB/token"},
               {"roof"}},
              {}};
  for (const ModelResult& result : results)
    table.rows.push_back({result.run.model, size_text(result.run.weight_bytes),
                          parameter_text(result.run.parameters), result.run.backend,
                          std::to_string(result.run.threads), std::to_string(result.run.max_batch_tokens),
                          result.test.name(), with_spread(result.tok_s), number(result.bytes_per_token / 1e6),
                          percent(result.fraction_of_roof)});
  return table;
}

ordered_json results_json(const Results& results) {
  ordered_json json = {{"machine", machine_json(results.host, results.machine)},
                       {"kernels", kernel_json(results.kernels)},
                       {"attention", attention_json(results.attention)},
                       {"models", model_json(results.models)}};
  if (results.ab) json["ab"] = ab_json(results.ab_sides, *results.ab);
  if (!results.cut_short.empty()) json["cut_short"] = results.cut_short;
  return json;
}

}  // namespace eider::bench
