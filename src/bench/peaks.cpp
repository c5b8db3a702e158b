#include "bench/peaks.h"

namespace eider::bench {

std::vector<const Probes*> usable_probes(const Machine& machine) {
  std::vector<const Probes*> usable;
  const auto add = [&](bool machine_has_it, const Probes* probes) {
    if (machine_has_it && probes != nullptr) usable.push_back(probes);
  };
  add(machine.has_avx512, avx512_probes());
  add(machine.has_fma, avx2_probes());
  add(true, baseline_probes());
  return usable;
}

const Probes& probes_for(const Machine& machine, std::string_view isa) {
  const std::vector<const Probes*> usable = usable_probes(machine);
  for (const Probes* probes : usable)
    if (isa == probes->isa) return *probes;
  return *usable.back();
}

Samples measure_peak(std::int64_t (*probe)(std::int64_t rounds), ThreadPool& pool, int samples) {
  constexpr std::int64_t kRounds = 1'000'000;  // about 2 ms
  const double operations = static_cast<double>(probe(1)) * kRounds * pool.size();
  return sample_rate(samples, operations / 1e9, [&] { pool.run([&](int) { probe(kRounds); }); });
}

}  // namespace eider::bench
