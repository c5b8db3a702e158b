#include "weights/gguf_tensors.h"

#include <string>
#include <utility>

#include "weights/printable.h"

namespace eider {

Result<GgufTensors> GgufTensors::create(const GgufArchitecture& architecture, CheckpointBuilder& builder) {
  GgufTensors tensors(architecture, builder);
  EIDER_TRY(tensors.num_hidden_layers_, builder.config().integer("num_hidden_layers"));
  EIDER_TRY(tensors.query_heads_, builder.config().integer("num_attention_heads"));
  EIDER_TRY(tensors.key_value_heads_, builder.config().integer("num_key_value_heads"));
  return tensors;
}

Status GgufTensors::add(const TensorView& tensor) {
  EIDER_TRY(const auto target, find_gguf_target(architecture_, tensor.name, num_hidden_layers_));
  if (target.name.role == GgufRole::kIgnored) return {};
  const std::string experts = target.prefix + "mlp.experts";
  switch (target.name.role) {
    case GgufRole::kFusedQkv:
      return add_fused_qkv(tensor, target);
    case GgufRole::kExperts:
      return builder_.add_experts(tensor, experts, target.name.published);
    case GgufRole::kGateUpExperts:
      return builder_.add_gate_up_experts(tensor, experts);
    default: {
      TensorView renamed = tensor;
      renamed.name = target.prefix + std::string(target.name.published);
      return add_rows(std::move(renamed), target.name.role);
    }
  }
}

Status GgufTensors::add_data(const DataTensor& tensor) {
  if (find_gguf_target(architecture_, tensor.name, num_hidden_layers_))
    return error("tensor {} has type {}, which holds data; a weight is needed", printable(tensor.name),
                 tensor.dtype);
  builder_.add_data(tensor);
  return {};
}

Status GgufTensors::add_rows(TensorView tensor, GgufRole role) {
  if (role == GgufRole::kPlain || !architecture_.permuted_rows) return builder_.add(std::move(tensor));
  const std::int64_t heads = role == GgufRole::kQueryRows ? query_heads_ : key_value_heads_;
  EIDER_TRY(OwnedTensor rows, half_split_like(tensor, heads));
  const auto fill = [tensor, heads](std::byte* to) { copy_half_split_rows(tensor, heads, to); };
  if (tensor.shape.rank() == 2) return builder_.add(builder_.own(std::move(rows), fill));
  fill(rows.buffer.data());
  return builder_.add(builder_.own(std::move(rows)));
}

/// Rows of all query heads, then of all key heads, then of all value heads.
Status GgufTensors::add_fused_qkv(const TensorView& tensor, const GgufTarget& target) {
  const std::int64_t heads = query_heads_ + 2 * key_value_heads_;
  if (tensor.shape.rank() == 0 || tensor.shape[0] % heads != 0)
    return error("tensor {}: shape {}, expected a multiple of {} rows", printable(tensor.name),
                 tensor.shape.text(), heads);
  struct Piece {
    const char* projection;
    std::int64_t heads;
    GgufRole role;
  };
  const Piece pieces[] = {{"q_proj", query_heads_, GgufRole::kQueryRows},
                          {"k_proj", key_value_heads_, GgufRole::kKeyRows},
                          {"v_proj", key_value_heads_, GgufRole::kPlain}};
  const std::int64_t head_rows = tensor.shape[0] / heads;
  std::int64_t begin = 0;
  for (const Piece& piece : pieces) {
    std::string name =
        fmt::format("{}self_attn.{}.{}", target.prefix, piece.projection, target.name.published);
    const std::int64_t rows = piece.heads * head_rows;
    EIDER_TRY(auto slice, slice_first_dimension(tensor, begin, rows, std::move(name)));
    EIDER_TRY_STATUS(add_rows(std::move(slice), piece.role));
    begin += rows;
  }
  return {};
}

}  // namespace eider
