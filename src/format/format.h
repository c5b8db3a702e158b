// Format: the name of a storage format, and nothing about its bytes. storage_format.h says what the bytes
// mean.
#pragma once

#include <cstdint>

namespace eider {

enum class Format : std::uint8_t {
  kF32,
  kF16,
  kBF16,
  kQ4_0,
  kQ4_1,
  kQ5_0,
  kQ5_1,
  kQ8_0,
  kQ4_K,
  kQ5_K,
  kQ6_K
};

}  // namespace eider
