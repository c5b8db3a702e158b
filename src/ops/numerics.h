// numerics.inl.h compiled for the baseline CPU, for code that is not a kernel.
#pragma once

#include <cstdint>

#include "base/float_bits.h"
#include "base/inline.h"

namespace eider {
/// Counts the changes of docs/NUMERICS.md: what was computed under another version may have other bits.
inline constexpr std::uint32_t kNumericsVersion = 2;
}  // namespace eider

namespace eider::numerics {
#include "ops/numerics.inl.h"
}  // namespace eider::numerics
