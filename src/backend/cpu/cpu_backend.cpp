#include "backend/cpu/cpu_backend.h"

#include <fmt/ranges.h>

#include "backend/cpu/tables.h"
#include "backend/host/host_backend.h"

namespace eider {
namespace {

/// Of the layout in packed.h. Another layout needs another number, or files of prepared weights would be
/// misread (packed_layout_test.cpp knows the bytes).
constexpr std::uint32_t kPackingVersion = 4;
/// Added where FP8 is packed as fp9.
constexpr std::uint32_t kFp9Packing = 1000;

template <host::Kernels (*make_table)(Fp8Form)>
const host::Kernels* table(Fp8Form form) {
  static const host::Kernels kTables[] = {make_table(Fp8Form::kFp8), make_table(Fp8Form::kFp9)};
  return &kTables[form == Fp8Form::kFp9];
}

/// Tables that this machine can run, best first.
std::vector<const host::Kernels*> usable_tables([[maybe_unused]] const Machine& machine, Fp8Form form) {
  std::vector<const host::Kernels*> tables;
#if defined(__x86_64__)
  if (machine.has_avx512) tables.push_back(table<cpu::avx512::make_table>(form));
  if (machine.has_avx_vnni) tables.push_back(table<cpu::avx2_vnni::make_table>(form));
  if (machine.has_fma) tables.push_back(table<cpu::avx2::make_table>(form));
#elif defined(__aarch64__)
  if (machine.has_dot_product) tables.push_back(table<cpu::neon_dot::make_table>(form));
  tables.push_back(table<cpu::neon::make_table>(form));
#endif
  tables.push_back(table<cpu::scalar::make_table>(form));
  return tables;
}

}  // namespace

std::uint32_t cpu_packing_version(Fp8Form form) {
  return kPackingVersion + (form == Fp8Form::kFp9 ? kFp9Packing : 0);
}

std::vector<std::string_view> cpu_isas(const Machine& machine) {
  std::vector<std::string_view> names;
  for (const host::Kernels* table : usable_tables(machine, Fp8Form::kFp8)) names.emplace_back(table->name);
  return names;
}

const host::Kernels* cpu_kernels(const Machine& machine, std::string_view isa, Fp8Form form) {
  for (const host::Kernels* table : usable_tables(machine, form))
    if (isa == table->name) return table;
  return nullptr;
}

Result<std::unique_ptr<Backend>> make_cpu_backend(ThreadPool& pool, const Machine& machine,
                                                  std::string_view isa, Fp8Form form) {
  if (const host::Kernels* table = cpu_kernels(machine, isa, form))
    return make_host_backend(fmt::format("cpu ({})", isa), pool, *table, cpu_packing_version(form));
  return error("instruction set '{}' is not one that this machine and this build have: {}", isa,
               fmt::join(cpu_isas(machine), ", "));
}

}  // namespace eider
