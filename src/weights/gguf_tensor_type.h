// The tensor types of GGUF files by number.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "format/format.h"

namespace eider {

/// The storage format of a tensor type, or one line that names the type: known but not read yet, removed from
/// GGUF, or never heard of.
Result<Format> gguf_tensor_format(std::uint32_t type);

/// The number of a storage format's tensors.
std::uint32_t gguf_tensor_type(Format format);

}  // namespace eider
