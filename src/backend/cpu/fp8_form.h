// Fp8Form: what the CPU backend makes of FP8 weights when it packs them. Either form gives the same bits.
#pragma once

#include <cstdint>

namespace eider {

enum class Fp8Form : std::uint8_t {
  kFp8,  ///< their bytes: 8 bits a weight
  kFp9,  ///< format/fp9.h: 9 bits
};

/// "fp8" or "fp9"
constexpr const char* fp8_form_name(Fp8Form form) {
  return form == Fp8Form::kFp8 ? "fp8" : "fp9";
}

}  // namespace eider
