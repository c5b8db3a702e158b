// TensorView: a named, shaped look at weights in their storage format. It owns nothing; the Checkpoint or
// Buffer it came from must outlive it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

#include "base/check.h"
#include "format/block_scales.h"
#include "format/format.h"

namespace eider {

/// Dimensions in PyTorch order, last index fastest. At most four.
class Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<std::int64_t> dims) : Shape(std::span(dims.begin(), dims.size())) {}
  explicit Shape(std::span<const std::int64_t> dims);

  int rank() const { return rank_; }
  std::int64_t operator[](int index) const {
    EIDER_CHECK(index >= 0 && index < rank_);
    return dims_[static_cast<std::size_t>(index)];
  }
  /// The last dimension (1 for a scalar): the contraction length of a weight.
  std::int64_t columns() const { return rank_ == 0 ? 1 : dims_[static_cast<std::size_t>(rank_ - 1)]; }
  /// Product of all but the last dimension.
  std::int64_t rows() const;
  std::int64_t elements() const { return rows() * columns(); }
  /// "[49152, 576]"
  std::string text() const;

  bool operator==(const Shape&) const = default;

 private:
  std::array<std::int64_t, 4> dims_{};
  int rank_ = 0;
};

/// Weights are W[out, in] and y = x W^T. `data` holds shape.rows() rows of format_row_bytes(format, columns)
/// bytes each, aligned for the format's block; `scales` are those of a format that has none of its own.
struct TensorView {
  std::string name;
  Format format = Format::kF32;
  Shape shape;
  const std::byte* data = nullptr;
  BlockScales scales = {};

  std::int64_t rows() const { return shape.rows(); }
  std::int64_t columns() const { return shape.columns(); }
  std::int64_t row_bytes() const;
  std::int64_t bytes() const { return rows() * row_bytes(); }
  const std::byte* row(std::int64_t index) const { return data + index * row_bytes(); }

  /// Row `index` dequantised: `columns()` values.
  void decode_row(std::int64_t index, float* values) const;

  /// Rows [begin, begin + count) of a matrix (or, of a tensor without scales, of all its matrices) as a
  /// matrix [count, columns] of its own, named `new_name`.
  TensorView slice_rows(std::int64_t begin, std::int64_t count, std::string new_name) const;
};

}  // namespace eider
