#include "backend/cpu/cpu_backend.h"

#include <fmt/ranges.h>

#include "backend/cpu/tables.h"
#include "backend/host/host_backend.h"

namespace eider {
namespace {

/// Of the layout in packed.h. Another layout needs another number, or files of prepared weights would be
/// misread (packed_layout_test.cpp knows the bytes).
constexpr std::uint32_t kPackingVersion = 1;

template <host::Kernels (*make_table)()>
const host::Kernels* table() {
  static const host::Kernels kTable = make_table();
  return &kTable;
}

/// Tables that this machine can run, best first.
std::vector<const host::Kernels*> usable_tables([[maybe_unused]] const Machine& machine) {
  std::vector<const host::Kernels*> tables;
#if defined(__x86_64__)
  if (machine.has_avx512) tables.push_back(table<cpu::avx512::make_table>());
  if (machine.has_avx_vnni) tables.push_back(table<cpu::avx2_vnni::make_table>());
  if (machine.has_fma) tables.push_back(table<cpu::avx2::make_table>());
#elif defined(__aarch64__)
  if (machine.has_dot_product) tables.push_back(table<cpu::neon_dot::make_table>());
  tables.push_back(table<cpu::neon::make_table>());
#endif
  tables.push_back(table<cpu::scalar::make_table>());
  return tables;
}

}  // namespace

std::vector<std::string_view> cpu_isas(const Machine& machine) {
  std::vector<std::string_view> names;
  for (const host::Kernels* table : usable_tables(machine)) names.emplace_back(table->name);
  return names;
}

const host::Kernels* cpu_kernels(const Machine& machine, std::string_view isa) {
  for (const host::Kernels* table : usable_tables(machine))
    if (isa == table->name) return table;
  return nullptr;
}

Result<std::unique_ptr<Backend>> make_cpu_backend(ThreadPool& pool, const Machine& machine,
                                                  std::string_view isa) {
  if (const host::Kernels* table = cpu_kernels(machine, isa))
    return make_host_backend(fmt::format("cpu ({})", isa), pool, *table, kPackingVersion);
  return error("instruction set '{}' is not one that this machine and this build have: {}", isa,
               fmt::join(cpu_isas(machine), ", "));
}

}  // namespace eider
