// Qwen3, dense (Yang et al. 2025): Llama with an RMS norm on each head of q and k before rope.
#include "model/architectures.h"
#include "model/llama.h"

namespace eider {

Result<Model> load_qwen3(const Checkpoint& checkpoint) {
  LlamaTraits traits{.attention = {.qkv_bias = Bias::kOptional, .o_bias = Bias::kOptional, .qk_norm = true}};
  EIDER_TRY(traits.first_sliding_layer, qwen_first_sliding_layer(checkpoint.config()));
  return load_llama_like(checkpoint, traits);
}

}  // namespace eider
