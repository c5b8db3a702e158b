// The JSON header of a .safetensors file as it is written, before its claims are checked against the file.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace eider {

struct SafetensorsHeaderEntry {
  std::string dtype;
  std::vector<std::uint64_t> shape;
  std::vector<std::uint64_t> data_offsets;  ///< begin and end in the data section
};

/// Reads the header while it is parsed, without a document in between: a header of 100 MB costs no more
/// memory than its entries. Anything but {name: {"dtype", "shape", "data_offsets"}} and {"__metadata__":
/// {name: text}} is an error, and so is a name that appears twice.
Result<std::map<std::string, SafetensorsHeaderEntry, std::less<>>> read_safetensors_header(
    std::string_view json);

}  // namespace eider
