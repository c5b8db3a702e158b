// Shapes of published models, by which synthetic ones are made: sizes alone, no weights.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace eider {

/// Names of the fields are those of published configurations; 0 where a model has none of a thing.
struct ModelShape {
  std::string_view name;          ///< "qwen3-0.6b"
  std::string_view architecture;  ///< general.architecture of GGUF files
  std::int64_t vocab_size;
  std::int64_t hidden_size;
  std::int64_t intermediate_size;
  std::int64_t num_hidden_layers;
  std::int64_t num_attention_heads;
  std::int64_t num_key_value_heads;
  std::int64_t head_dim;
  std::int64_t max_position_embeddings;
  double rms_norm_eps;
  double rope_theta;
  bool tie_word_embeddings;
  std::int64_t num_experts = 0;
  std::int64_t num_experts_per_tok = 0;
  std::int64_t moe_intermediate_size = 0;
  std::int64_t sliding_window = 0;
  double rope_linear_factor = 0;
};

std::span<const ModelShape> model_shapes();
/// An error lists the names.
Result<ModelShape> find_model_shape(std::string_view name);
/// "qwen3-0.6b, qwen3-4b, ..."
std::string model_shape_names();

}  // namespace eider
