#include "bench/peaks.h"

namespace eider::bench {

namespace {

template <Probes (*make_probes)()>
const Probes* table() {
  static const Probes kTable = make_probes();
  return &kTable;
}

}  // namespace

std::vector<const Probes*> usable_probes([[maybe_unused]] const Machine& machine) {
  std::vector<const Probes*> usable;
#if defined(__x86_64__)
  if (machine.has_avx512) usable.push_back(table<avx512::make_probes>());
  if (machine.has_avx_vnni) usable.push_back(table<avx2_vnni::make_probes>());
  if (machine.has_fma) usable.push_back(table<avx2::make_probes>());
#elif defined(__aarch64__)
  if (machine.has_dot_product) usable.push_back(table<neon_dot::make_probes>());
  usable.push_back(table<neon::make_probes>());
#endif
  usable.push_back(table<scalar::make_probes>());
  return usable;
}

const Probes& probes_for(const Machine& machine, std::string_view isa) {
  for (const Probes* probes : usable_probes(machine))
    if (isa == probes->isa) return *probes;
  return *usable_probes(machine).back();
}

Samples measure_peak(std::int64_t (*probe)(std::int64_t rounds), ThreadPool& pool, int samples) {
  constexpr std::int64_t kRounds = 1'000'000;  // about 2 ms
  const double operations = static_cast<double>(probe(1)) * kRounds * pool.size();
  return sample_rate(samples, operations / 1e9, [&] { pool.run([&](int) { probe(kRounds); }); });
}

}  // namespace eider::bench
