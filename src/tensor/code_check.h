// Refuses weights that hold codes which are not numbers, before anything is computed with them.
#pragma once

#include "base/result.h"
#include "tensor/tensor_view.h"

namespace eider {

/// An error that names the first NaN code and its place; FP8 has such codes, other formats do not. Reads all
/// of the tensor's bytes.
Status check_codes(const TensorView& tensor);

}  // namespace eider
