// The tensor types of GGUF files by number.
#pragma once

#include <cstdint>
#include <optional>

#include "base/result.h"
#include "format/format.h"

namespace eider {

/// The storage format of a tensor type, or one line that names the type: known but not read yet, removed from
/// GGUF, or never heard of.
Result<Format> gguf_tensor_format(std::uint32_t type);

/// A type that holds data and never weights: I8, I16, I32, I64 or F64.
struct GgufDataType {
  const char* name;
  std::int64_t bytes;  ///< of an element
};

/// Nothing for types of weights and unknown ones.
std::optional<GgufDataType> gguf_data_type(std::uint32_t type);

/// The number of a storage format's tensors.
std::uint32_t gguf_tensor_type(Format format);

}  // namespace eider
