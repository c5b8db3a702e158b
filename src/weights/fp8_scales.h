// The scales that published FP8 checkpoints keep in tensors of their own: blocks (DeepSeek, Qwen), rows, or
// one for the whole weight (compressed-tensors, ModelOpt).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "format/block_scales.h"
#include "tensor/buffer.h"
#include "weights/config.h"
#include "weights/safetensors.h"

namespace eider {

/// A table of scales with memory of its own.
struct OwnedScales {
  Buffer values;
  BlockScales scales;
};

class Fp8Scales {
 public:
  /// A tensor of the checkpoint by its name in the files, or null.
  using Find = std::function<const SafetensorsFile::Entry*(std::string_view name)>;

  /// Takes the size of blocks from quantization_config, or 128 x 128 where that says none; what it says of
  /// which tensors are quantised is not read, for their dtypes say it.
  static Result<Fp8Scales> create(const Config& config, Find find);

  /// The scales of weight `name`, a matrix [rows, columns] or matrices [experts, rows, columns], as floats.
  /// Errors say what is wrong with them, not which weight's they are.
  Result<OwnedScales> read(const std::string& name, const Shape& shape) const;

 private:
  Fp8Scales(Find find, std::int64_t block_rows, std::int64_t block_columns)
      : find_(std::move(find)), block_rows_(block_rows), block_columns_(block_columns) {}
  /// How a weight of `shape` is cut by scales of `scales_shape`; without values.
  Result<BlockScales> blocks(const Shape& shape, const Shape& scales_shape, bool blocks_first) const;

  Find find_;
  std::int64_t block_rows_, block_columns_;
};

}  // namespace eider
