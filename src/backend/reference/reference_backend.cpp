#include "backend/reference/reference_backend.h"

#include "backend/host/host_backend.h"
#include "backend/reference/tables.h"

namespace eider {

std::unique_ptr<Backend> make_reference_backend(ThreadPool& pool, const Machine& machine) {
  const host::Kernels* fused = machine.has_fma ? reference::fma_kernels() : nullptr;
  return make_host_backend("reference", pool, fused != nullptr ? *fused : reference::baseline_kernels(), 0);
}

}  // namespace eider
