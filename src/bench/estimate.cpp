#include "bench/estimate.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "bench/model_work.h"
#include "bench/samples.h"
#include "format/storage_format.h"

namespace eider::bench {
namespace {

/// The least share of the roofs that is reckoned with.
constexpr double kLeastShare = 0.1;
constexpr double kRoofSeconds = 0.5;  // of one reading
/// GB/s at which memory is filled.
constexpr double kFillRate = 1;

double seconds_at_least_share(const Work& work, const Roof& roof) {
  return share_of_roof(work, 1, roof).nearest() / kLeastShare;
}

/// Of a kernel: two runs to find how many make a sample, one that is not counted, and the samples.
double sampled_seconds(const Work& work, int samples, const Roof& roof) {
  const double once = seconds_at_least_share(work, roof);
  return 2 * once + (samples + 1) * (kSampleSeconds / kLeastShare + once);
}

}  // namespace

double most_seconds(const MachineOptions& options) {
  constexpr double kColdRate = 4, kHotRate = 8, kSmallPagesRate = 0.3;  // GB/s, the last of page faults
  const double gigabytes = static_cast<double>(options.cold_bytes) / 1e9;
  const double thread_counts = std::ceil(std::log2(options.threads)) + 1;
  const double walks = thread_counts * 3 * kStreamCountCount * (options.samples + 1);
  const double cold = walks * 1.5 * gigabytes / 4 / kColdRate;  // the half for small pages
  const double hot = walks * 0.256 / kHotRate;
  const double memory = gigabytes / kFillRate + gigabytes / 2 / kSmallPagesRate;
  return cold + hot + memory + thread_counts * (options.samples + 1) * 0.2;
}

double most_seconds(const std::vector<KernelCase>& cases, int samples, const Roof& roof, double cold_bytes) {
  double seconds = 0;
  std::optional<Format> before;
  for (const KernelCase& c : cases) {
    if (c.format != before) seconds += kRoofSeconds;  // a format's first case has the roof read
    before = c.format;
    Work work{.bytes = static_cast<double>(c.rows * format_row_bytes(c.format, c.columns))};
    const bool is_float = visit_format(c.format, []<class F>() { return is_float_rule(F::kProduct); });
    (is_float ? work.fp32_ops : work.int8_ops) = 2.0 * static_cast<double>(c.rows * c.columns * c.tokens);
    seconds += sampled_seconds(work, samples, roof);
    if (c.cold) seconds += cold_bytes / 1e9 / kFillRate;
  }
  return seconds;
}

double most_seconds(const std::vector<AttentionCase>& cases, int samples, const Roof& roof,
                    double cold_bytes) {
  double seconds = 0;
  for (const AttentionCase& c : cases)
    seconds += sampled_seconds(c.work(), samples, roof) + cold_bytes / 1e9 / kFillRate + kRoofSeconds;
  return seconds;
}

double most_seconds(const Plan& plan, KvType kv_type, const std::vector<ModelTest>& tests, int repetitions,
                    const Roof& roof) {
  constexpr double kStepSeconds = 1e-3;  // barriers and what is not weights
  double seconds = 0;
  for (const ModelTest& test : tests) {
    const int runs = repetitions + 1;
    // Windows may make every run fill its depth anew.
    const std::int64_t prompt = runs * (test.prompt + test.depth);
    seconds += 2 * kRoofSeconds;
    if (prompt > 0) seconds += seconds_at_least_share(prefill_work(plan, prompt), roof);
    const Work token{.bytes = decode_bytes(plan, kv_type, static_cast<double>(test.depth + test.generate))};
    seconds +=
        runs * static_cast<double>(test.generate) * (seconds_at_least_share(token, roof) + kStepSeconds);
  }
  return seconds;
}

}  // namespace eider::bench
