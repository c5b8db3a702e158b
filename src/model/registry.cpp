#include <fmt/ranges.h>

#include <string_view>
#include <utility>
#include <vector>

#include "model/architectures.h"

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

}  // namespace

Result<Model> load_model(std::shared_ptr<const Checkpoint> checkpoint) {
  EIDER_TRY(const std::string model_type, checkpoint->config().string("model_type"));
  std::vector<std::string_view> known;
  for (const Architecture& architecture : kArchitectures) {
    known.push_back(architecture.model_type);
    if (architecture.model_type != model_type) continue;
    auto loaded = architecture.load(*checkpoint).context(checkpoint->path());
    if (!loaded) return std::move(loaded).error();
    Model model = std::move(loaded).value();
    model.architecture = model_type;
    model.checkpoint = std::move(checkpoint);
    return model;
  }
  return error("{}: model_type '{}' is not supported (supported: {})", checkpoint->path(), model_type,
               fmt::join(known, ", "));
}

}  // namespace eider
