// Writes model directories as published ones look: config.json, model.safetensors and its index. For files
// that eider makes itself.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "base/result.h"
#include "tensor/tensor_view.h"
#include "weights/new_file.h"

namespace eider {

/// `tensors`: matrices of F32, F16, BF16 or FP8, which has its scales beside it as NAME_scale_inv, and
/// vectors. Makes the directory where it is not there; each file replaces an older one only when all of it is
/// written. Fails with one line that names the file.
Status write_model_directory(const std::string& directory, const nlohmann::json& config,
                             const std::vector<TensorView>& tensors, const WriteProgress& progress = {});

}  // namespace eider
