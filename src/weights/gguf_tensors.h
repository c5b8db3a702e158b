// GgufTensors: tensors under GGUF's names become those of a Checkpoint: published names, half-split rows,
// separate matrices. Readers of files and makers of synthetic models hand theirs over.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "tensor/tensor_view.h"
#include "weights/checkpoint_builder.h"
#include "weights/data_tensor.h"
#include "weights/gguf_names.h"

namespace eider {

class GgufTensors {
 public:
  /// Reads the counts of layers and heads from the builder's configuration. References must outlive the
  /// result.
  static Result<GgufTensors> create(const GgufArchitecture& architecture, CheckpointBuilder& builder);

  /// `tensor`: under its name in the file, in PyTorch shape.
  Status add(const TensorView& tensor);
  /// Keeps it under its name in the file, for models that ask for it; what must be a weight cannot be data.
  Status add_data(const DataTensor& tensor);

 private:
  GgufTensors(const GgufArchitecture& architecture, CheckpointBuilder& builder)
      : architecture_(architecture), builder_(builder) {}
  Status add_rows(TensorView tensor, GgufRole role);
  Status add_fused_qkv(const TensorView& tensor, const GgufTarget& target);

  const GgufArchitecture& architecture_;
  CheckpointBuilder& builder_;
  std::int64_t num_hidden_layers_ = 0;
  std::int64_t query_heads_ = 0;
  std::int64_t key_value_heads_ = 0;
};

}  // namespace eider
