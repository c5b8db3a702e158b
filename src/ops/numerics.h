// numerics.inl.h compiled for the baseline CPU, for code that is not a kernel.
#pragma once

#include <cstdint>

#include "base/float_bits.h"
#include "base/inline.h"

namespace eider::numerics {
#include "ops/numerics.inl.h"
}  // namespace eider::numerics
