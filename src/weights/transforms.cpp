#include "weights/transforms.h"

#include <array>
#include <cstring>
#include <utility>

#include "format/storage_format.h"
#include "weights/printable.h"

namespace eider {
namespace {

/// Whether the tensor can be taken apart along its first dimension.
Status check_has_entries(const TensorView& tensor) {
  if (tensor.shape.rank() == 0) return error("tensor {}: a scalar has no rows", printable(tensor.name));
  if (tensor.shape.rank() == 1 && format_block_elems(tensor.format) != 1)
    return error("tensor {}: a vector in {} cannot be cut", printable(tensor.name),
                 format_name(tensor.format));
  return {};
}

/// float32(w + term)
Result<OwnedTensor> plus(const TensorView& tensor, float term) {
  const std::int64_t columns = tensor.columns();
  EIDER_TRY(auto buffer, Buffer::allocate(static_cast<std::size_t>(tensor.shape.elements()) * sizeof(float)));
  auto* values = reinterpret_cast<float*>(buffer.data());
  for (std::int64_t row = 0; row < tensor.rows(); ++row)
    decode_row(tensor.format, tensor.row(row), columns, values + row * columns);
  for (std::int64_t i = 0; i < tensor.shape.elements(); ++i) values[i] += term;
  TensorView view{tensor.name, Format::kF32, tensor.shape, buffer.data()};
  return OwnedTensor{std::move(buffer), std::move(view)};
}

}  // namespace

Result<TensorView> slice_first_dimension(const TensorView& tensor, std::int64_t begin, std::int64_t count,
                                         std::string name) {
  EIDER_TRY_STATUS(check_has_entries(tensor));
  const std::int64_t stride = tensor.bytes() / tensor.shape[0];
  EIDER_CHECK(begin >= 0 && count >= 0 && begin + count <= tensor.shape[0]);
  std::array<std::int64_t, 4> dims{};
  for (int i = 0; i < tensor.shape.rank(); ++i) dims[static_cast<std::size_t>(i)] = tensor.shape[i];
  dims[0] = count;
  const Shape shape(
      std::span<const std::int64_t>(dims.data(), static_cast<std::size_t>(tensor.shape.rank())));
  return TensorView{std::move(name), tensor.format, shape, tensor.data + begin * stride};
}

TensorView slice_matrix(const TensorView& tensor, std::int64_t index, std::string name) {
  EIDER_CHECK_EQ(tensor.shape.rank(), 3);
  const std::int64_t rows = tensor.shape[1];
  BlockScales scales = tensor.scales;
  if (scales.values != nullptr)
    scales.values += index * ((rows + scales.block_rows - 1) / scales.block_rows) * scales.column_blocks;
  return {std::move(name), tensor.format, Shape{rows, tensor.columns()}, tensor.row(index * rows), scales};
}

Result<OwnedTensor> half_split_like(const TensorView& tensor, std::int64_t heads) {
  EIDER_TRY_STATUS(check_has_entries(tensor));
  const std::int64_t rows = tensor.shape[0];
  if (heads < 1 || rows % (2 * heads) != 0)
    return error("tensor {}: {} rows are no even number for each of {} heads", printable(tensor.name), rows,
                 heads);
  if (tensor.scales.values != nullptr && tensor.scales.block_rows % (rows / heads) != 0)
    return error("tensor {}: blocks of scales that end within a head", printable(tensor.name));
  EIDER_TRY(auto buffer, Buffer::allocate(static_cast<std::size_t>(tensor.bytes())));
  TensorView view{tensor.name, tensor.format, tensor.shape, buffer.data(), tensor.scales};
  return OwnedTensor{std::move(buffer), std::move(view)};
}

void copy_half_split_rows(const TensorView& tensor, std::int64_t heads, std::byte* to) {
  const std::int64_t stride = tensor.bytes() / tensor.shape[0];
  const std::int64_t half = tensor.shape[0] / heads / 2;
  for (std::int64_t head = 0; head < heads; ++head) {
    const std::byte* from = tensor.data + head * 2 * half * stride;
    for (std::int64_t side = 0; side < 2; ++side) {
      for (std::int64_t i = 0; i < half; ++i, to += stride)
        std::memcpy(to, from + (2 * i + side) * stride, static_cast<std::size_t>(stride));
    }
  }
}

Result<OwnedTensor> one_plus(const TensorView& tensor) {
  return plus(tensor, 1.0f);
}
Result<OwnedTensor> minus_one(const TensorView& tensor) {
  return plus(tensor, -1.0f);
}

Result<OwnedTensor> aligned_copy(const TensorView& tensor) {
  const auto bytes = static_cast<std::size_t>(tensor.bytes());
  EIDER_TRY(auto buffer, Buffer::allocate(bytes));
  if (bytes != 0) std::memcpy(buffer.data(), tensor.data, bytes);
  TensorView view{tensor.name, tensor.format, tensor.shape, buffer.data()};
  return OwnedTensor{std::move(buffer), std::move(view)};
}

}  // namespace eider
