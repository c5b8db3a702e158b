// What kernels.inl.h needs, included outside its namespaces. Nothing here may emit a function of its own in
// the files compiled for a particular CPU: format headers are always_inline, of the standard library only
// what compilers expand in place is used (tests/backend/isa_symbols_test.py looks at the object file).
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "backend/host/kernels.h"
#include "base/inline.h"
#include "format/half.h"
#include "format/storage_format.h"
