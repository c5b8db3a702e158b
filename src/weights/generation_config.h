// generation_config.json of a Hugging Face directory: how the makers of a model advise to sample from it, and
// which tokens end its turn.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace eider {

struct GenerationConfig {
  // Absent where the file does not say.
  std::optional<double> temperature;
  std::optional<std::int64_t> top_k;
  std::optional<double> top_p;
  std::optional<double> min_p;
  std::optional<double> repetition_penalty;
  std::vector<std::int64_t> eos_token_ids;
  std::string eos_origin;  ///< the file that names those
};

/// Reads `directory`/generation_config.json; without it, or where it does not name end tokens, those are
/// config.json's. Empty where neither is there. Values out of range are errors.
Result<GenerationConfig> read_generation_config(const std::string& directory);

}  // namespace eider
