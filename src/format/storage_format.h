// The list of storage formats and the one place where a run-time Format becomes a type.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "format/bf16.h"
#include "format/f16.h"
#include "format/f32.h"
#include "format/format.h"
#include "format/fp8_e4m3.h"
#include "format/iq1_m.h"
#include "format/iq1_s.h"
#include "format/iq2_s.h"
#include "format/iq2_xs.h"
#include "format/iq2_xxs.h"
#include "format/iq3_s.h"
#include "format/iq3_xxs.h"
#include "format/iq4_nl.h"
#include "format/iq4_xs.h"
#include "format/mxfp4.h"
#include "format/nvfp4.h"
#include "format/q1_0.h"
#include "format/q2_k.h"
#include "format/q3_k.h"
#include "format/q4_0.h"
#include "format/q4_1.h"
#include "format/q4_k.h"
#include "format/q5_0.h"
#include "format/q5_1.h"
#include "format/q5_k.h"
#include "format/q6_k.h"
#include "format/q8_0.h"
#include "format/tq1_0.h"
#include "format/tq2_0.h"

// X(type) for every format.
// clang-format off
#define EIDER_FORMATS(X)                                                                     \
  X(F32) X(F16) X(BF16) X(Q4_0) X(Q4_1) X(Q5_0) X(Q5_1) X(Q8_0) X(Q4_K) X(Q5_K) X(Q6_K)        \
  X(Q2_K) X(Q3_K) X(IQ4_NL) X(IQ4_XS) X(IQ3_XXS) X(IQ3_S) X(IQ2_XXS) X(IQ2_XS) X(IQ2_S)        \
  X(IQ1_S) X(IQ1_M) X(TQ1_0) X(TQ2_0) X(MXFP4) X(NVFP4) X(Q1_0) X(FP8_E4M3)
// clang-format on

namespace eider {

/// Calls visitor.template operator()<F>() with the type of `format` and returns what it returns:
/// visit_format(format, [&]<class F>() { return F::kBlockElems; }).
template <class Visitor>
decltype(auto) visit_format(Format format, Visitor&& visitor) {
  switch (format) {
#define EIDER_VISIT(F) \
  case F::kFormat:     \
    return std::forward<Visitor>(visitor).template operator()<F>();
    EIDER_FORMATS(EIDER_VISIT)
#undef EIDER_VISIT
  }
  check_failed(__FILE__, __LINE__, "a Format outside its list");
}

/// "Q4_K" and so on.
const char* format_name(Format format);
/// Columns of one block: 1, 32, 64, 128 or 256.
std::int64_t format_block_elems(Format format);
/// Bytes of one block.
std::int64_t format_block_bytes(Format format);
/// Bytes of a row of `columns`, which must be a multiple of the block.
std::int64_t format_row_bytes(Format format, std::int64_t columns);

/// Dequantises `columns` values (a multiple of the block) of one row.
void decode_row(Format format, const void* row, std::int64_t columns, float* values);

}  // namespace eider
