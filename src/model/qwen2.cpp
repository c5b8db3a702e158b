// Qwen2 and Qwen2.5 (Yang et al. 2024): Llama with biases on q, k and v.
#include "model/architectures.h"
#include "model/llama.h"

namespace eider {

Result<std::int64_t> qwen_first_sliding_layer(const Config& config) {
  EIDER_TRY(const bool sliding, config.boolean_or("use_sliding_window", false));
  if (!sliding) return std::numeric_limits<std::int64_t>::max();
  return config.integer("max_window_layers");
}

Result<Model> load_qwen2(const Checkpoint& checkpoint) {
  LlamaTraits traits{.attention = {.qkv_bias = Bias::kRequired}};
  EIDER_TRY(traits.first_sliding_layer, qwen_first_sliding_layer(checkpoint.config()));
  return load_llama_like(checkpoint, traits);
}

}  // namespace eider
