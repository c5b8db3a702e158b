// The styles in which published models write their configuration, turned into one.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/result.h"
#include "weights/config.h"

namespace eider {

/// The style that models read: model_type of the text model, rope_theta and rope_scaling (an object with
/// rope_type, or absent), rope_local_base_freq, num_experts, torch_dtype, sliding_window_pattern. What
/// transformers 5 nests or renames is put back; null keys are dropped; keys that published files leave to the
/// defaults of their model are filled in where engines must know them (num_key_value_heads, rope_theta,
/// tie_word_embeddings, all of gemma 3's). `origin` begins the error messages.
Result<Config> normalise_config(nlohmann::json published, const std::string& origin);

}  // namespace eider
