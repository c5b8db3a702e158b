// The reference backend: every operation of docs/NUMERICS.md as an obvious scalar function, run by a pool of
// threads over rows. It is the definition that every other backend is tested against.
#pragma once

#include <memory>

#include "base/machine.h"
#include "base/thread_pool.h"
#include "ops/backend.h"

namespace eider {

/// `pool` must outlive the backend. `machine` decides which of the two builds of the same text runs (with or
/// without fused multiply-add instructions); their bits are equal.
std::unique_ptr<Backend> make_reference_backend(ThreadPool& pool, const Machine& machine);

}  // namespace eider
