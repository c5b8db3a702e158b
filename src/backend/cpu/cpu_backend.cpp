#include "backend/cpu/cpu_backend.h"

#include <fmt/ranges.h>

#include "backend/cpu/tables.h"
#include "backend/host/host_backend.h"

namespace eider {
namespace {

/// Tables that this machine can run, best first.
std::vector<const host::Kernels*> usable_tables(const Machine& machine) {
  std::vector<const host::Kernels*> tables;
  const auto add = [&](bool machine_has_it, const host::Kernels* table) {
    if (machine_has_it && table != nullptr) tables.push_back(table);
  };
  add(machine.has_avx512, cpu::avx512_kernels());
  add(machine.has_fma, cpu::avx2_kernels());
  return tables;
}

}  // namespace

std::vector<std::string_view> cpu_isas(const Machine& machine) {
  std::vector<std::string_view> names;
  for (const host::Kernels* table : usable_tables(machine)) names.emplace_back(table->name);
  return names;
}

Result<std::unique_ptr<Backend>> make_cpu_backend(ThreadPool& pool, const Machine& machine,
                                                  std::string_view isa) {
  for (const host::Kernels* table : usable_tables(machine))
    if (isa == table->name) return make_host_backend(fmt::format("cpu ({})", isa), pool, *table);
  return error("instruction set '{}' is not one that this machine and this build have: {}", isa,
               fmt::join(cpu_isas(machine), ", "));
}

}  // namespace eider
