// DataTensor: a tensor that a file holds as plain data, such as a table of indices, and not as weights that
// products read. It owns nothing; the file's mapping must outlive it.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "tensor/tensor_view.h"

namespace eider {

struct DataTensor {
  std::string name;
  std::string dtype;  ///< as the file's format calls it: "I32", "F64", "U8", "F8_E4M3", ...
  Shape shape;
  std::span<const std::byte> bytes;  ///< the elements, little-endian, last index fastest; copy them out
  std::string problem = {};          ///< why it is no weight, where its dtype is one's: "is FP8, but ..."
};

}  // namespace eider
