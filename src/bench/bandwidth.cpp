#include "bench/bandwidth.h"

#include <algorithm>

namespace eider::bench {
namespace {

/// What slices are multiples of: whole pieces of the most streams, in either half.
constexpr std::size_t kSliceUnit = 2 * 8 * kStreamPiece;
constexpr std::size_t kWindows = 4;

std::size_t round_down(std::size_t bytes) {
  return bytes / kSliceUnit * kSliceUnit;
}

}  // namespace

std::string_view access_name(Access access) {
  constexpr std::string_view kNames[] = {"read", "write", "copy"};
  return kNames[static_cast<std::size_t>(access)];
}

void BandwidthProbe::walk(Access access, std::size_t streams, std::byte* data, std::size_t bytes) const {
  switch (access) {
    case Access::kRead:
      return probes_.read[streams](data, bytes);
    case Access::kWrite:
      return probes_.write[streams](data, bytes);
    case Access::kCopy:
      return probes_.copy[streams](data + bytes / 2, data, bytes / 2);
  }
}

Samples BandwidthProbe::cold(Access access, std::size_t streams, ThreadPool& pool, int samples) {
  const auto threads = static_cast<std::size_t>(pool.size());
  const std::size_t slice = round_down(memory_.size() / kWindows / threads);
  const double moved = static_cast<double>(slice * threads) * (access == Access::kCopy ? 0.5 : 1.0);
  return sample_rate(samples, moved / 1e9, [&] {
    std::byte* window = memory_.data() + next_window_ * slice * threads;
    next_window_ = (next_window_ + 1) % kWindows;
    pool.run(
        [&](int thread) { walk(access, streams, window + static_cast<std::size_t>(thread) * slice, slice); });
  });
}

Samples BandwidthProbe::hot(Access access, std::size_t streams, ThreadPool& pool, int samples) const {
  constexpr double kBytesOfASample = 256e6;  // of a thread: some milliseconds
  const auto threads = static_cast<std::size_t>(pool.size());
  const std::size_t slice = round_down(std::min(cache_bytes_ / 2, memory_.size() / threads));
  const int rounds = std::max(1, static_cast<int>(kBytesOfASample / static_cast<double>(slice)));
  const double moved = static_cast<double>(slice * threads) * rounds * (access == Access::kCopy ? 0.5 : 1.0);
  return sample_rate(samples, moved / 1e9, [&] {
    pool.run([&](int thread) {
      for (int round = 0; round < rounds; ++round)
        walk(access, streams, memory_.data() + static_cast<std::size_t>(thread) * slice, slice);
    });
  });
}

}  // namespace eider::bench
