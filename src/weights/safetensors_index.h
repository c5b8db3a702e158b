// model.safetensors.index.json: which shard holds which tensor.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "weights/safetensors.h"

namespace eider {

struct SafetensorsIndex {
  std::string path;
  std::vector<std::string> files;  ///< paths of the shards, in the order of their names
  std::map<std::string, std::string, std::less<>> file_of;  ///< tensor to path
};

/// Reads an index, whose shards must all be there, beside it. Names that lead elsewhere are errors.
Result<SafetensorsIndex> read_safetensors_index(const std::string& path);

/// Status of a shard, `file` under the path `name`: the index may say nothing of a tensor in it, or name one
/// that is nowhere, but not that a tensor is in another shard.
Status check_index(const SafetensorsIndex& index, const std::string& name, const SafetensorsFile& file);

}  // namespace eider
