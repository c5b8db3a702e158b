// A backend that runs plans on this machine's threads with one table of kernels. reference/ and cpu/ make
// theirs here.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "backend/host/kernels.h"
#include "base/thread_pool.h"
#include "ops/backend.h"

namespace eider {

/// `pool` and `kernels` must outlive the backend. `packing_version`: of the layout that kernels.packing
/// makes; 0 where there is none.
std::unique_ptr<Backend> make_host_backend(std::string name, ThreadPool& pool, const host::Kernels& kernels,
                                           std::uint32_t packing_version);

}  // namespace eider
