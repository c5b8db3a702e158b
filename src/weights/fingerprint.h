// What a checkpoint's files are, told from little reading.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "weights/checkpoint.h"

namespace eider {

/// A digest of each file's size, time of last modification, header, and some pages of its tensors; not of its
/// name. It misses only a change that keeps size and time and touches none of those pages. Nothing for a
/// checkpoint that has no files.
std::optional<std::array<std::uint64_t, 2>> fingerprint(const Checkpoint& checkpoint);

}  // namespace eider
