// Progress: how a measurement tells how far it is, and hears that it is to end.
#pragma once

#include <cstdint>
#include <functional>

namespace eider::bench {

/// Called after each part of `total` is done; where it returns false, the measurement fails with
/// "interrupted".
using Progress = std::function<bool(std::int64_t done, std::int64_t total)>;

}  // namespace eider::bench
