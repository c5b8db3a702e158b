// The architectures: one function and one file each. registry.cpp lists them by model_type.
#pragma once

#include "base/result.h"
#include "model/model.h"

namespace eider {

Result<Model> load_llama(const Checkpoint& checkpoint);      // llama.cpp: Llama 2/3.x, SmolLM2, Mistral
Result<Model> load_qwen2(const Checkpoint& checkpoint);      // qwen2.cpp: Qwen2, Qwen2.5
Result<Model> load_qwen3(const Checkpoint& checkpoint);      // qwen3.cpp: Qwen3 dense
Result<Model> load_qwen3_moe(const Checkpoint& checkpoint);  // qwen3_moe.cpp: Qwen3 30B-A3B, 235B-A22B, Coder
Result<Model> load_gemma3(const Checkpoint& checkpoint);     // gemma3.cpp: Gemma 3, text

}  // namespace eider
