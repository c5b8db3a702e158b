// What the values of a source must undergo to become the published ones. Pure functions: the builder keeps
// the results.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "tensor/buffer.h"
#include "tensor/tensor_view.h"

namespace eider {

/// A tensor with bytes of its own.
struct OwnedTensor {
  Buffer buffer;
  TensorView view;
};

/// Entries [begin, begin + count) of the first dimension, keeping the rank. A vector must be of a format
/// without blocks to be cut.
Result<TensorView> slice_first_dimension(const TensorView& tensor, std::int64_t begin, std::int64_t count,
                                         std::string name);

/// Matrix `index` of a three-dimensional tensor.
TensorView slice_matrix(const TensorView& tensor, std::int64_t index, std::string name);

/// A tensor of the same shape, of zeros, for copy_half_split_rows(); fails where that cannot be done.
Result<OwnedTensor> half_split_like(const TensorView& tensor, std::int64_t heads);
/// Rows of q_proj or k_proj (or entries of their biases) from the interleaved order of llama-family GGUF
/// files to half-split order, written to `to`: row 2i + s of a head becomes row s * head_dim / 2 + i.
void copy_half_split_rows(const TensorView& tensor, std::int64_t heads, std::byte* to);

/// float32(1 + w): gemma's norm weights as safetensors files have them.
Result<OwnedTensor> one_plus(const TensorView& tensor);
/// float32(w - 1), from which one_plus() makes w again where it is in 1/2..2.
Result<OwnedTensor> minus_one(const TensorView& tensor);

/// The same bytes at an address that is aligned for every format.
Result<OwnedTensor> aligned_copy(const TensorView& tensor);

}  // namespace eider
