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
#include "format/q4_0.h"
#include "format/q4_1.h"
#include "format/q4_k.h"
#include "format/q5_0.h"
#include "format/q5_1.h"
#include "format/q5_k.h"
#include "format/q6_k.h"
#include "format/q8_0.h"

// X(type) for every format.
#define EIDER_FORMATS(X) X(F32) X(F16) X(BF16) X(Q4_0) X(Q4_1) X(Q5_0) X(Q5_1) X(Q8_0) X(Q4_K) X(Q5_K) X(Q6_K)

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
/// Columns of one block: 1, 32 or 256.
std::int64_t format_block_elems(Format format);
/// Bytes of one block.
std::int64_t format_block_bytes(Format format);
/// Bytes of a row of `columns`, which must be a multiple of the block.
std::int64_t format_row_bytes(Format format, std::int64_t columns);

/// Dequantises `columns` values (a multiple of the block) of one row.
void decode_row(Format format, const void* row, std::int64_t columns, float* values);

}  // namespace eider
