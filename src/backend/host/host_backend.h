// A backend that runs plans on this machine's threads with one table of kernels. reference/ and cpu/ make
// theirs here.
#pragma once

#include <memory>
#include <string>

#include "backend/host/kernels.h"
#include "base/thread_pool.h"
#include "ops/backend.h"

namespace eider {

/// `pool` and `kernels` must outlive the backend.
std::unique_ptr<Backend> make_host_backend(std::string name, ThreadPool& pool, const host::Kernels& kernels);

}  // namespace eider
