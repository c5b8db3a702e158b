#pragma once

#include <cstdint>

namespace eider {

/// Index into a model's vocabulary.
using TokenId = std::int32_t;

}  // namespace eider
