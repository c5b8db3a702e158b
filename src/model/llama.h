// The Llama decoder with what its relatives change in it: qwen2.cpp and qwen3.cpp say how they differ,
// llama.cpp holds the forward pass.
#pragma once

#include <cstdint>
#include <limits>

#include "model/blocks.h"

namespace eider {

struct LlamaTraits {
  AttentionTraits attention;
  /// Layers from here on attend within sliding_window, unless layer_types says otherwise.
  std::int64_t first_sliding_layer = std::numeric_limits<std::int64_t>::max();
};

Result<Model> load_llama_like(const Checkpoint& checkpoint, const LlamaTraits& traits);

/// Qwen's rule: with use_sliding_window, layers from max_window_layers on are sliding.
Result<std::int64_t> qwen_first_sliding_layer(const Config& config);

}  // namespace eider
