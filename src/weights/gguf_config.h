// The <architecture>.* metadata of a GGUF file as a configuration in the style of published config.json
// files.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "weights/config.h"
#include "weights/gguf_names.h"
#include "weights/gguf_parts.h"

namespace eider {

/// general.architecture, which must be one that gguf_names knows.
Result<const GgufArchitecture*> gguf_architecture(const GgufFile& file);

/// Metadata of the first part, and what only the tensors tell: vocab_size, tie_word_embeddings,
/// moe_intermediate_size. A setting that eider cannot honour is an error that names its key.
Result<Config> gguf_config(const GgufArchitecture& architecture, const std::vector<GgufPart>& parts);

}  // namespace eider
