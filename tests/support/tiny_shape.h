// The smallest shape of a synthetic model that has everything an architecture has, small enough to count by
// hand.
#pragma once

#include <string_view>

#include "weights/synthetic_shapes.h"

namespace eider {

inline ModelShape tiny_shape(std::string_view architecture) {
  ModelShape shape{.name = "tiny",
                   .architecture = architecture,
                   .vocab_size = 300,
                   .hidden_size = 256,
                   .intermediate_size = 512,
                   .num_hidden_layers = 2,
                   .num_attention_heads = 4,
                   .num_key_value_heads = 2,
                   .head_dim = 64,
                   .max_position_embeddings = 1024,
                   .rms_norm_eps = 1e-6,
                   .rope_theta = 1e6,
                   .tie_word_embeddings = architecture != "llama"};
  if (architecture == "qwen3moe") {
    shape.num_experts = 8;
    shape.num_experts_per_tok = 2;
    shape.moe_intermediate_size = 256;
  }
  if (architecture == "gemma3") {
    shape.sliding_window = 128;
    shape.rope_linear_factor = 8;
  }
  return shape;
}

}  // namespace eider
