#include "format/storage_format.h"

namespace eider {

const char* format_name(Format format) {
  return visit_format(format, []<class F>() { return F::kName; });
}

std::int64_t format_block_elems(Format format) {
  return visit_format(format, []<class F>() { return F::kBlockElems; });
}

std::int64_t format_block_bytes(Format format) {
  return visit_format(format, []<class F>() { return static_cast<std::int64_t>(sizeof(typename F::Block)); });
}

std::int64_t format_row_bytes(Format format, std::int64_t columns) {
  return columns / format_block_elems(format) * format_block_bytes(format);
}

void decode_row(Format format, const void* row, std::int64_t columns, float* values) {
  visit_format(format, [&]<class F>() {
    const auto* blocks = static_cast<const typename F::Block*>(row);
    for (std::int64_t block = 0; block < columns / F::kBlockElems; ++block)
      F::decode(blocks[block], values + block * F::kBlockElems);
  });
}

}  // namespace eider
