#include "tensor/tensor_view.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "format/storage_format.h"

namespace eider {

Shape::Shape(std::span<const std::int64_t> dims) : rank_(static_cast<int>(dims.size())) {
  EIDER_CHECK(dims.size() <= dims_.size());
  std::ranges::copy(dims, dims_.begin());
}

std::int64_t Shape::rows() const {
  std::int64_t product = 1;
  for (int i = 0; i + 1 < rank_; ++i) product *= dims_[static_cast<std::size_t>(i)];
  return product;
}

std::string Shape::text() const {
  return fmt::format("[{}]", fmt::join(dims_.begin(), dims_.begin() + rank_, ", "));
}

std::int64_t TensorView::row_bytes() const {
  return format_row_bytes(format, columns());
}

void TensorView::decode_row(std::int64_t index, float* values) const {
  eider::decode_row(format, row(index), columns(), values);
  if (scales.values == nullptr) return;
  for (std::int64_t column = 0; column < columns(); ++column) values[column] *= scales.at(index, column);
}

TensorView TensorView::slice_rows(std::int64_t begin, std::int64_t count, std::string new_name) const {
  EIDER_CHECK(begin >= 0 && count >= 0 && begin + count <= rows());
  BlockScales rest = scales;
  if (scales.values != nullptr) {
    EIDER_CHECK_EQ(shape.rank(), 2);  // the blocks of each matrix begin anew
    const std::int64_t row_of_table = scales.first_row + begin;
    rest.values += row_of_table / scales.block_rows * scales.column_blocks;
    rest.first_row = row_of_table % scales.block_rows;
  }
  return {std::move(new_name), format, Shape{count, columns()}, row(begin), rest};
}

}  // namespace eider
