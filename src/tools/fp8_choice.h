// How the cpu backend executes FP8 weights: as the flag says, or as is faster on this machine, which is
// measured once and kept in a small file of the weight cache's directory.
#pragma once

#include <string>

#include "backend/cpu/fp8_form.h"
#include "base/machine.h"
#include "base/result.h"
#include "tools/flags.h"

namespace eider {

struct Fp8Choice {
  Fp8Form form = Fp8Form::kFp8;
  std::string why;  ///< "--fp8-as says so"
};

/// For the instruction set `isa`. A directory that cannot be read or written only means that it is measured
/// again next time. Fails where there is no memory to measure with.
Result<Fp8Choice> choose_fp8_form(const EngineFlags& flags, const Machine& machine, const std::string& isa);

}  // namespace eider
