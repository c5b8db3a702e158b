#include "tensor/code_check.h"

#include <algorithm>
#include <span>

#include "format/storage_format.h"

namespace eider {
namespace {

/// A plain loop, so that compilers make vectors of it.
bool has_nan(std::span<const std::uint8_t> codes) {
  int nans = 0;
  for (const std::uint8_t code : codes) nans |= static_cast<int>(FP8_E4M3::is_nan(code));
  return nans != 0;
}

}  // namespace

Status check_codes(const TensorView& tensor) {
  if (tensor.format != Format::kFP8_E4M3) return {};
  const std::int64_t columns = tensor.columns();
  for (std::int64_t row = 0; row < tensor.rows(); ++row) {
    const std::span codes(reinterpret_cast<const std::uint8_t*>(tensor.row(row)),
                          static_cast<std::size_t>(columns));
    if (!has_nan(codes)) continue;
    const auto nan = std::ranges::find_if(codes, [](std::uint8_t code) { return FP8_E4M3::is_nan(code); });
    return error("tensor {}: the weight at row {}, column {} is NaN (code {:#04x}): the file is damaged",
                 tensor.name, row, nan - codes.begin(), *nan);
  }
  return {};
}

}  // namespace eider
