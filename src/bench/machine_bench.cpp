#include "bench/machine_bench.h"

#include <algorithm>
#include <memory>

#include "base/function_ref.h"
#include "bench/peaks.h"

namespace eider::bench {
namespace {

constexpr Access kAccesses[] = {Access::kRead, Access::kWrite, Access::kCopy};

/// 1, 2, 4, ... and `most`.
std::vector<int> thread_counts(int most) {
  std::vector<int> counts;
  for (int count = 1; count < most; count *= 2) counts.push_back(count);
  counts.push_back(most);
  return counts;
}

class MachineBench {
 public:
  MachineBench(const Machine& machine, const HostInfo& host, const MachineOptions& options,
               const Progress& progress, const TimeLimit& limit)
      : probes_(usable_probes(machine)), host_(host), options_(options), progress_(progress), limit_(limit) {
    for (const int count : thread_counts(options.threads))
      pools_.push_back(std::make_unique<ThreadPool>(count));
    const auto counts = static_cast<std::int64_t>(pools_.size());
    // As many as measure() below takes steps.
    total_ = counts * (3 * static_cast<std::int64_t>(std::size(kAccesses)) +
                       static_cast<std::int64_t>(probes_.size()) + 1);
  }

  Result<MachineReport> measure() {
    for (const Pages pages : {Pages::kHuge, Pages::kSmall}) EIDER_TRY_STATUS(measure_memory(pages));
    for (const auto& pool : pools_) {
      for (const Probes* probes : probes_) EIDER_TRY_STATUS(step([&] { measure_peaks(*probes, *pool); }));
      EIDER_TRY_STATUS(
          step([&] { report_.thread_costs.push_back(measure_thread_costs(*pool, options_.samples)); }));
    }
    return std::move(report_);
  }

 private:
  Status measure_memory(Pages pages) {
    // Pages of 4 KiB take several times as long to be had.
    const std::size_t bytes = pages == Pages::kHuge ? options_.cold_bytes : options_.cold_bytes / 2;
    EIDER_TRY(const PagedMemory memory, PagedMemory::create(bytes, pages, *pools_.back()));
    BandwidthProbe probe(*probes_.front(), memory, host_.l2_bytes);
    for (const auto& pool : pools_)
      for (const Access access : kAccesses)
        for (const bool cold : {true, false}) {
          if (pages == Pages::kSmall && !cold) continue;
          EIDER_TRY_STATUS(step([&] { measure_bandwidth(probe, access, cold, pages, *pool); }));
        }
    return {};
  }

  /// One step, if there is time for it.
  Status step(FunctionRef<void()> measure) {
    if (limit_.over())
      report_.complete = false;
    else
      measure();
    if (!progress_(++done_, total_)) return error("interrupted");
    return {};
  }

  void measure_bandwidth(BandwidthProbe& probe, Access access, bool cold, Pages pages, ThreadPool& pool) {
    for (std::size_t streams = 0; streams < kStreamCountCount; ++streams) {
      Samples samples = cold ? probe.cold(access, streams, pool, options_.samples)
                             : probe.hot(access, streams, pool, options_.samples);
      report_.bandwidth.push_back(
          {access, cold, pages, pool.size(), kStreamCounts[streams], std::move(samples)});
    }
  }

  void measure_peaks(const Probes& probes, ThreadPool& pool) {
    report_.peaks.push_back(
        {probes.isa, "fp32_fma", pool.size(), measure_peak(probes.fp32_fma, pool, options_.samples)});
    if (probes.int8_dot != nullptr)
      report_.peaks.push_back(
          {probes.isa, "int8_dot", pool.size(), measure_peak(probes.int8_dot, pool, options_.samples)});
  }

  std::vector<const Probes*> probes_;
  const HostInfo& host_;
  const MachineOptions& options_;
  const Progress& progress_;
  const TimeLimit& limit_;
  std::vector<std::unique_ptr<ThreadPool>> pools_;
  std::int64_t done_ = 0, total_ = 0;
  MachineReport report_;
};

}  // namespace

Result<MachineReport> measure_machine(const Machine& machine, const HostInfo& host,
                                      const MachineOptions& options, const Progress& progress,
                                      const TimeLimit& limit) {
  return MachineBench(machine, host, options, progress, limit).measure();
}

std::size_t default_cold_bytes(const Machine& machine, const HostInfo& host) {
  constexpr std::size_t kLeast = std::size_t{256} << 20, kMost = std::size_t{1} << 30;
  const std::size_t wanted = std::clamp(4 * host.l3_bytes, kLeast, kMost);
  return std::min(wanted, static_cast<std::size_t>(machine.available_memory) / 4);
}

}  // namespace eider::bench
