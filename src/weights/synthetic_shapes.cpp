#include "weights/synthetic_shapes.h"

#include <algorithm>

namespace eider {
namespace {

// llama-3.1's rotary scaling is left out: it moves frequencies, not time.
constexpr ModelShape kShapes[] = {
    {"qwen3-0.6b", "qwen3", 151936, 1024, 3072, 28, 16, 8, 128, 40960, 1e-6, 1e6, true},
    {"qwen3-4b", "qwen3", 151936, 2560, 9728, 36, 32, 8, 128, 40960, 1e-6, 1e6, true},
    {"qwen3-8b", "qwen3", 151936, 4096, 12288, 36, 32, 8, 128, 40960, 1e-6, 1e6, false},
    {"qwen3-30b-a3b", "qwen3moe", 151936, 2048, 6144, 48, 32, 4, 128, 40960, 1e-6, 1e6, false, 128, 8, 768},
    {"qwen3-235b-a22b", "qwen3moe", 151936, 4096, 12288, 94, 64, 4, 128, 40960, 1e-6, 1e6, false, 128, 8,
     1536},
    {"llama-3.1-8b", "llama", 128256, 4096, 14336, 32, 32, 8, 128, 131072, 1e-5, 5e5, false},
    {.name = "gemma3-4b",
     .architecture = "gemma3",
     .vocab_size = 262144,
     .hidden_size = 2560,
     .intermediate_size = 10240,
     .num_hidden_layers = 34,
     .num_attention_heads = 8,
     .num_key_value_heads = 4,
     .head_dim = 256,
     .max_position_embeddings = 131072,
     .rms_norm_eps = 1e-6,
     .rope_theta = 1e6,
     .tie_word_embeddings = true,
     .sliding_window = 1024,
     .rope_linear_factor = 8},
};

}  // namespace

std::span<const ModelShape> model_shapes() {
  return kShapes;
}

Result<ModelShape> find_model_shape(std::string_view name) {
  const auto* found = std::ranges::find(kShapes, name, &ModelShape::name);
  if (found == std::end(kShapes))
    return error("'{}' is no shape that is known; known are {}", name, model_shape_names());
  return *found;
}

std::string model_shape_names() {
  std::string names;
  for (const ModelShape& shape : kShapes) names += (names.empty() ? "" : ", ") + std::string(shape.name);
  return names;
}

}  // namespace eider
