// A config.json of any text: parsed, normalised and asked for the keys that models read.
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string_view>

#include "weights/config_style.h"
#include "weights/json.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  auto parsed = eider::parse_json(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!parsed) return 0;
  const auto config = eider::normalise_config(std::move(*parsed), "config.json");
  if (!config) return 0;
  for (const char* key : {"model_type", "hidden_size", "rope_theta", "rope_scaling", "layer_types",
                          "mlp_only_layers", "tie_word_embeddings", "num_experts"}) {
    (void)config->size(key);
    (void)config->number(key);
    (void)config->boolean(key);
    (void)config->string(key);
    (void)config->strings(key);
    (void)config->integers(key);
    if (const auto object = config->object(key)) (void)object->number("factor");
  }
  return 0;
}
