#include "weights/generation_config.h"

#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>

#include "weights/config.h"
#include "weights/json.h"

namespace eider {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

Result<Config> read_config(const fs::path& path) {
  constexpr std::size_t kMostBytes = std::size_t{16} << 20;
  EIDER_TRY(json object, read_optional_object(path.string(), kMostBytes));
  return Config(std::move(object), path.string());
}

Result<std::optional<double>> read_number(const Config& config, const char* key, double low, double high) {
  if (!config.has(key)) return std::optional<double>();
  EIDER_TRY(const double value, config.number(key));
  if (!(value >= low && value <= high))
    return error("{}: {}: {} is outside {} to {}", config.origin(), key, value, low, high);
  return std::optional<double>(value);
}

/// eos_token_id: an id or several.
Status read_eos_token_ids(const Config& config, GenerationConfig& generation) {
  constexpr const char* kKey = "eos_token_id";
  if (!config.has(kKey)) return {};
  generation.eos_origin = config.origin();
  if (config.json()[kKey].is_array()) {
    EIDER_TRY(generation.eos_token_ids, config.integers(kKey));
  } else {
    EIDER_TRY(const std::int64_t id, config.integer(kKey));
    generation.eos_token_ids = {id};
  }
  return {};
}

/// Of the model's configuration; multimodal models may say it for their language model alone.
Status read_model_eos_token_ids(const fs::path& path, GenerationConfig& generation) {
  EIDER_TRY(const Config config, read_config(path));
  if (config.has("eos_token_id") || !config.has("text_config")) return read_eos_token_ids(config, generation);
  EIDER_TRY(const Config text, config.object("text_config"));
  return read_eos_token_ids(text, generation);
}

}  // namespace

Result<GenerationConfig> read_generation_config(const std::string& directory) {
  EIDER_TRY(const Config config, read_config(fs::path(directory) / "generation_config.json"));
  GenerationConfig generation;
  EIDER_TRY(generation.temperature, read_number(config, "temperature", 0, 100));
  EIDER_TRY(generation.top_p, read_number(config, "top_p", 0, 1));
  EIDER_TRY(generation.min_p, read_number(config, "min_p", 0, 1));
  EIDER_TRY(generation.repetition_penalty, read_number(config, "repetition_penalty", 0.01, 100));
  if (config.has("top_k")) {
    EIDER_TRY(generation.top_k, config.integer("top_k"));
    if (*generation.top_k < 0 || *generation.top_k > std::numeric_limits<std::int32_t>::max())
      return error("{}: top_k: {} is not a number of tokens", config.origin(), *generation.top_k);
  }
  EIDER_TRY_STATUS(read_eos_token_ids(config, generation));
  if (generation.eos_origin.empty())
    EIDER_TRY_STATUS(read_model_eos_token_ids(fs::path(directory) / "config.json", generation));
  return generation;
}

}  // namespace eider
