// Backends by name, for tests that compare them: "reference"; "baseline", the reference without FMA; one of
// cpu_isas(), also with FP8 weights packed as fp9: "avx2 fp9".
#pragma once

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "backend/cpu/cpu_backend.h"
#include "backend/reference/reference_backend.h"
#include "base/machine.h"
#include "base/thread_pool.h"
#include "ops/plan.h"

namespace eider::test {

inline constexpr std::string_view kAsFp9 = " fp9";

/// Of the CPU backend on this machine; with `fp8`, in both forms of such weights.
inline std::vector<std::string> cpu_backends(bool fp8) {
  std::vector<std::string> names;
  for (const std::string_view isa : cpu_isas(detect_machine())) {
    names.emplace_back(isa);
    if (fp8) names.push_back(names.back() + std::string(kAsFp9));
  }
  return names;
}

/// What must give the reference's bits on this machine.
inline std::vector<std::string> other_backends(bool fp8 = false) {
  std::vector<std::string> names = cpu_backends(fp8);
  names.insert(names.begin(), "baseline");
  return names;
}
inline std::vector<std::string> other_backends(const Plan& plan) {
  return other_backends(std::ranges::any_of(plan.ops, [](const Op& op) {
    return std::ranges::any_of(weights_of(op),
                               [](const TensorView* weight) { return weight->format == Format::kFP8_E4M3; });
  }));
}

inline std::unique_ptr<Backend> make_backend(std::string_view name, ThreadPool& pool) {
  Machine machine = detect_machine();
  if (name != "reference" && name != "baseline") {
    const bool as_fp9 = name.ends_with(kAsFp9);
    if (as_fp9) name.remove_suffix(kAsFp9.size());
    auto cpu = make_cpu_backend(pool, machine, name, as_fp9 ? Fp8Form::kFp9 : Fp8Form::kFp8);
    if (!cpu.ok()) throw std::runtime_error(cpu.error().message());
    return std::move(*cpu);
  }
  machine.has_fma = machine.has_fma && name == "reference";
  return make_reference_backend(pool, machine);
}

}  // namespace eider::test
