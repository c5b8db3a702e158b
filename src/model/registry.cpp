#include <fmt/ranges.h>

#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "model/architectures.h"
#include "weights/printable.h"

namespace eider {
namespace {

struct Architecture {
  std::string_view model_type;
  Result<Model> (*load)(const Checkpoint&);
};

constexpr Architecture kArchitectures[] = {
    {"llama", load_llama}, {"mistral", load_llama},       {"qwen2", load_qwen2},
    {"qwen3", load_qwen3}, {"qwen3_moe", load_qwen3_moe}, {"gemma3_text", load_gemma3},
};

/// A weight of a layer that the plan does not read says that the configuration is of another model: one of
/// fewer layers, or without these norms or biases. Nothing else would.
Status check_all_read(const Checkpoint& checkpoint, const Plan& plan) {
  constexpr std::string_view kLayers = "model.layers.";
  std::unordered_set<std::string_view> read;
  for (const Op& op : plan.ops)
    for (const TensorView* weight : weights_of(op)) read.insert(weight->name);
  const auto& tensors = checkpoint.tensors();
  for (auto it = tensors.lower_bound(kLayers); it != tensors.end() && it->first.starts_with(kLayers); ++it) {
    const std::string_view name = it->first;
    if ((name.ends_with(".weight") || name.ends_with(".bias")) && !read.contains(name))
      return error("{}: tensor {} has no place in the model that {} describes", checkpoint.path(),
                   printable(name), checkpoint.config().origin());
  }
  return {};
}

}  // namespace

Result<Model> load_model(std::shared_ptr<const Checkpoint> checkpoint) {
  EIDER_TRY(const std::string model_type, checkpoint->config().string("model_type"));
  std::vector<std::string_view> known;
  for (const Architecture& architecture : kArchitectures) {
    known.push_back(architecture.model_type);
    if (architecture.model_type != model_type) continue;
    auto loaded = architecture.load(*checkpoint);
    if (!loaded) return std::move(loaded).error();
    Model model = std::move(loaded).value();
    EIDER_TRY_STATUS(check_all_read(*checkpoint, model.plan));
    model.architecture = model_type;
    model.pooling = checkpoint->pooling();
    model.checkpoint = std::move(checkpoint);
    return model;
  }
  return error("{}: model_type '{}' is not supported (supported: {})", checkpoint->path(), model_type,
               fmt::join(known, ", "));
}

}  // namespace eider
